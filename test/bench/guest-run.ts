import { join } from 'node:path';
import { buildGuestPrograms } from '../guest-programs/build.ts';
import { bundleForGuest } from '../vm/guest-bundle.ts';
import type { PayloadItem } from '../vm/guest-initramfs.ts';
import { runInGuest, type GuestOptions } from '../vm/guest.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import type { Measured } from './figure.ts';

/** Where a bench finds itself, what it loads and the programs it starts. */
const FOLDER = '/run/payload';
const KERNEL = '6.12';
const BUILT = [
  'agent/native/build/enforcer_native.node',
  'bpf/build/enforcer.bpf.o',
  'bpf/build/probe.bpf.o',
] as const;

/**
 * Boots Debian's stable kernel and runs one of this folder's `*.guest.ts` files in it. What it prints as a line
 * `{"figure":…}` is reported, everything else goes to the progress.
 *
 * @throws Error with the guest's console if the program does not exit with 0
 */
export async function measureInGuest(
  file: string,
  report: (measured: Measured) => void,
  guest: Pick<GuestOptions, 'instructionCounted' | 'memoryMib' | 'timeoutMs'>,
): Promise<void> {
  const { place, execstorm, tiny } = await buildGuestPrograms();
  const entry = `import ${JSON.stringify(join(import.meta.dirname, file))};`;
  const payload: PayloadItem[] = [
    { path: `${FOLDER}/bench.mjs`, source: await bundleForGuest(entry) },
    ...BUILT.map((path) => ({
      path: `${FOLDER}/${path.slice(path.lastIndexOf('/') + 1)}`,
      source: join(REPOSITORY, path),
    })),
    ...Object.entries({ place, execstorm, tiny }).map(([name, source]) => ({
      path: `${FOLDER}/${name}`,
      source,
    })),
  ];
  const result = await runInGuest({
    ...guest,
    kernel: KERNEL,
    payload,
    command: ['node', `${FOLDER}/bench.mjs`],
    onLine: (line) => {
      if (line.startsWith('{"figure":')) report(JSON.parse(line) as Measured);
      else if (line !== '') printProgress(line);
    },
  });
  if (result.exitCode !== 0) {
    throw new Error(
      `${file} ended with ${result.exitCode} in the guest:\n${result.output}\n--- console\n${result.consoleLog}`,
    );
  }
}
