import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PREFIX = 'runtime-enforcer-guest-';

/**
 * Makes a directory for the files of one guest's run, and removes those of processes that were killed before they
 * could do it themselves.
 */
export async function runDirectory(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const owner = runDirectoryOwner(name);
    if (owner !== undefined && !isAlive(owner))
      await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
  return await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
}

/** The process id in the name of a run's directory; undefined for any other name. */
export function runDirectoryOwner(name: string): number | undefined {
  if (!name.startsWith(PREFIX)) return undefined;
  const match = /^([1-9][0-9]{0,9})-[A-Za-z0-9]+$/.exec(name.slice(PREFIX.length));
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
