import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runAgent } from '../commands/run.ts';
import { readRunOptions } from '../commands/run-options.ts';
import { loadNative } from '../kernel/native.ts';
import { acquireOwnership } from '../kernel/owner-lock.ts';
import { createFakeKernel, fakeEvent } from '../node/fake-kernel.ts';
import type { FitNode } from '../node/kernel-side.ts';

/**
 * Test support, a program: the whole agent of a cluster over a kernel in memory. Options are the agent's; `FAKE_NODE` is
 * a directory that stands for the node. SIGUSR2 makes its kernel report a violation in each container.
 */
const directory = process.env['FAKE_NODE'] ?? '';
const native = loadNative();
const lockPath = join(directory, 'owner.lock');
const openedBy = join(directory, 'opened-by');

/** Two that have the kernel open at a time are what must never be. */
async function claim(): Promise<void> {
  const other = Number(await readFile(openedBy, 'utf8').catch(() => '0'));
  if (other !== process.pid && (await hasFilesOpen(other))) {
    await writeFile(join(directory, 'overlap'), `${other} ${process.pid}`);
  }
  await writeFile(openedBy, String(process.pid));
}

/** A killed process can be signalled until its parent has waited for it, but loses its files before its locks fall. */
async function hasFilesOpen(pid: number): Promise<boolean> {
  const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
  return files.length > 0;
}

let report = (): void => undefined;
process.on('SIGUSR2', () => report());

function fakeFit(): FitNode {
  return {
    lockPath,
    own: (wait) => acquireOwnership(native, lockPath, wait),
    ownNow: () => acquireOwnership(native, lockPath),
    async open() {
      await claim();
      const kernel = createFakeKernel();
      report = () => kernel.deliver([...kernel.binder.containers()].map((container) => fakeEvent(container)));
      return {
        ...kernel,
        async close() {
          report = () => undefined;
          await rm(openedBy);
        },
      };
    },
  };
}

process.exitCode = await runAgent(readRunOptions(process.argv.slice(2), process.env), fakeFit);
process.exit();
