import { quote } from '@runtime-enforcer/api/field-error';
import { readFileSync, statSync } from 'node:fs';
import { mountNamespaceFile, processesBelow, readMountNamespace } from './running-programs.ts';

/** The first process of a container, in the host's pid namespace. */
export interface ContainerProcess {
  /** 0: not known. */
  readonly pid: number;
  /** Inode number of its mount namespace; 0: not known. */
  readonly mountNamespace: number;
  /** Whether this very agent runs in the container. */
  readonly isAgent: boolean;
}

/**
 * Finds the process of a container that is about to start, before its entrypoint runs: it is in the container's
 * cgroup and already in its mount namespace. Throws an Error that says what is so instead.
 *
 * The cgroup is asked, not the process: what /proc says of another process's cgroup depends on who reads it. Reads at
 * once: the runtime waits, both files are short and in memory, and a turn through the pool of threads for each call on
 * them takes ten times as long.
 * @param directory of the container's cgroup
 * @param pid as the runtime tells it; 0 if it does not
 */
export function findStartingProcess(directory: string, pid: number): ContainerProcess {
  const pids = processesIn(directory);
  const first = pid === 0 && pids.length === 1 ? (pids[0] ?? 0) : pid;
  if (first === 0) {
    throw new Error(
      `the runtime does not tell the container's first process, and its cgroup ${quote(directory)} holds ` +
        `${pids.length} processes, expected one`,
    );
  }
  if (!pids.includes(first)) {
    throw new Error(`the container's first process (pid ${first}) is not in its cgroup ${quote(directory)}`);
  }
  return { pid: first, mountNamespace: statSync(mountNamespaceFile(first)).ino, isAgent: false };
}

/**
 * Finds the first process of a container that already runs. It may have moved into a cgroup below, or have ended
 * while others go on: then its mount namespace is not known. Rejects if the cgroup cannot be read.
 */
export async function findRunningProcess(directory: string, pid: number): Promise<ContainerProcess> {
  const { pids } = await processesBelow(directory);
  const isAgent = pids.has(process.pid);
  if (!pids.has(pid)) return { pid: 0, mountNamespace: 0, isAgent };
  try {
    return { pid, mountNamespace: await readMountNamespace(pid), isAgent };
  } catch {
    return { pid: 0, mountNamespace: 0, isAgent };
  }
}

function processesIn(directory: string): number[] {
  const text = readFileSync(`${directory}/cgroup.procs`, 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
}
