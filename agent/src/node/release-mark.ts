import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically } from './atomic-file.ts';
import { ownDirectory } from './own-directory.ts';

const NAME = 'released';
const LOOK_MS = 1_000;

/** Somebody took enforcement off this node, and it stays off until they say otherwise. */
export interface ReleaseMark {
  /** RFC 3339; empty where it is not known. */
  readonly since: string;
}

/** Undefined where there is none. Rejects with the file system's error where that cannot be told. */
export async function readReleaseMark(stateDirectory: string): Promise<ReleaseMark | undefined> {
  let text: string;
  try {
    text = await readFile(join(stateDirectory, NAME), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  // A file of that name is a mark, whatever is in it: somebody in need may have made it with touch.
  const since = Date.parse(text.trim());
  return { since: Number.isNaN(since) ? '' : new Date(since).toISOString() };
}

/** Rejects with an error that names the directory, or that of the file system. */
export async function writeReleaseMark(stateDirectory: string): Promise<void> {
  await ownDirectory(stateDirectory, '--state-dir', 0o700);
  await writeFileAtomically(join(stateDirectory, NAME), `${new Date().toISOString()}\n`);
}

/** Whether there was one. Rejects with the file system's error. */
export async function removeReleaseMark(stateDirectory: string): Promise<boolean> {
  const isMarked = (await readReleaseMark(stateDirectory)) !== undefined;
  await rm(join(stateDirectory, NAME), { force: true });
  return isMarked;
}

/** What a released node's agent says. */
export function releasedSentence({ since }: ReleaseMark): string {
  return `enforcement was taken off this node by agent release${since === '' ? '' : ` at ${since}`}; agent resume brings it back`;
}

/**
 * Waits until there is a mark, or none any more, or `signal` aborts; resolves with the mark there is. What cannot be read
 * is as it was. Never rejects.
 */
export async function untilReleaseMark(
  is: 'set' | 'removed',
  stateDirectory: string,
  signal: AbortSignal,
): Promise<ReleaseMark | undefined> {
  while (!signal.aborted) {
    await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    const mark = await readReleaseMark(stateDirectory).catch(() => 'unknown' as const);
    if (mark !== 'unknown' && (mark !== undefined) === (is === 'set')) return mark;
  }
  return undefined;
}
