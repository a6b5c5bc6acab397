import { rename, rm } from 'node:fs/promises';
import type { NativeObject } from './native.ts';
import { listPins, markBuild, unmarkBuild, type PinDirectory } from './pins.ts';

/**
 * Attaches the programs and pins their links in `directory`, each in the place of the one that is there: the new
 * one decides before the old one ends. The mark of the build is made last. On failure the old links stay.
 *
 * Only the pins hold the links, so that removing them takes the program off the node whatever the agent does.
 */
export async function replaceLinks(
  directory: PinDirectory,
  object: NativeObject,
  programs: readonly string[],
  build: string,
): Promise<void> {
  const before = (await listPins(directory))?.links ?? [];
  await unmarkBuild(directory);
  const waiting: string[] = [];
  try {
    // The kernel runs what is attached last first: so the first program speaks, and its copies find what it missed.
    for (const name of programs.toReversed()) {
      const path = directory.replacingLink(name);
      // Left by an agent that was killed at this very place.
      await rm(path, { force: true });
      attachAndPin(object, name, path);
      waiting.push(path);
    }
  } catch (error) {
    for (const path of waiting) await rm(path, { force: true });
    throw error;
  }
  for (const name of programs) await rename(directory.replacingLink(name), directory.link(name));
  for (const name of before.filter((each) => !programs.includes(each))) {
    await rm(directory.link(name), { force: true });
  }
  await markBuild(directory, build);
}

function attachAndPin(object: NativeObject, name: string, path: string): void {
  const program = object.programs.get(name);
  if (program === undefined)
    throw new Error(`the kernel object has no program '${name}'; build it again: make -C bpf`);
  const link = program.attach();
  try {
    link.pin(path);
  } finally {
    link.close();
  }
}
