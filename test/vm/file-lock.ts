import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { once } from 'node:events';

/** How long a lock may be held by another process before somebody should be told that we wait. */
const QUIET_WAIT_MS = 1_000;

/**
 * Runs `work` while this machine's only holder of the lock on `path`. The lock belongs to a child process whose
 * standard input we keep open, so it is free again when this process ends in whatever way.
 *
 * @param path made when missing, with its directory; left in place afterwards
 * @param onWait called once when the lock is not free within a second
 * @throws what `work` throws; an Error when the `flock` program cannot be run
 */
export async function withFileLock<Result>(
  path: string,
  work: () => Promise<Result>,
  onWait: () => void,
): Promise<Result> {
  await mkdir(dirname(path), { recursive: true });
  const holder = spawn('flock', ['--exclusive', path, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'close');
  ended.catch(() => undefined);
  const waitNotice = setTimeout(onWait, QUIET_WAIT_MS);
  try {
    await Promise.race([
      once(holder.stdout, 'data'),
      ended.then(() => {
        throw new Error(`cannot lock ${path}: flock ended; install the Debian package util-linux`);
      }),
    ]);
    clearTimeout(waitNotice);
    return await work();
  } finally {
    clearTimeout(waitNotice);
    holder.stdin.end();
    await ended.catch(() => undefined);
  }
}
