import type { ExecutableKind } from '@runtime-enforcer/api/executable-path';
import { opendir, readFile, readlink, stat } from 'node:fs/promises';

/** Most processes and cgroups of one container that are read. */
const PROCESSES_MAX = 4_096;
const CGROUPS_MAX = 1_024;

const DELETED = Buffer.from(' (deleted)');
const MEMFD = Buffer.from('/memfd:');

/** The executable of one process of a container. */
export interface RunningProgram {
  /** In the host's pid namespace. */
  readonly pid: number;
  /** From the top of the mount tree, as the kernel program builds it; without the marks of `kind`. */
  readonly path: Uint8Array;
  readonly kind: ExecutableKind;
  /** The process is not in the container's mount namespace: the path names a file in its own. */
  readonly otherMountNamespace: boolean;
}

/** Reads what runs in a cgroup and those below it. Processes that end meanwhile are left out. */
export async function readRunningPrograms(
  cgroupDirectory: string,
  mountNamespace: number,
  onUnreadable: () => void,
): Promise<{ readonly programs: readonly RunningProgram[]; readonly incomplete: boolean }> {
  const { pids, incomplete } = await processesBelow(cgroupDirectory);
  const programs: RunningProgram[] = [];
  for (const pid of pids) {
    try {
      programs.push(await readProgram(pid, mountNamespace));
    } catch (error) {
      if (!isGone(error)) onUnreadable();
    }
  }
  return { programs, incomplete };
}

/**
 * The link's text is the path to the top of the process's mount tree, as seen from another one: the kernel finds our
 * root nowhere on the way, and ends at the top.
 */
async function readProgram(pid: number, mountNamespace: number): Promise<RunningProgram> {
  const link = await readlink(`/proc/${pid}/exe`, 'buffer');
  const namespace = await readMountNamespace(pid);
  const otherMountNamespace = mountNamespace !== 0 && namespace !== mountNamespace;
  const isDeleted = link.subarray(-DELETED.length).equals(DELETED);
  const path = isDeleted ? link.subarray(0, -DELETED.length) : link;
  if (path.subarray(0, MEMFD.length).equals(MEMFD)) {
    return { pid, path: path.subarray(MEMFD.length), kind: 'memfd', otherMountNamespace };
  }
  return { pid, path, kind: isDeleted ? 'deleted' : 'file', otherMountNamespace };
}

/** Inode number of a process's mount namespace. Rejects if the process is gone. */
export async function readMountNamespace(pid: number): Promise<number> {
  return (await stat(mountNamespaceFile(pid))).ino;
}

/** The file whose inode number is that of a process's mount namespace. */
export function mountNamespaceFile(pid: number): string {
  return `/proc/${pid}/ns/mnt`;
}

/** The processes of a cgroup and of those below it, as far as they are read. */
export async function processesBelow(
  root: string,
): Promise<{ pids: ReadonlySet<number>; incomplete: boolean }> {
  const pids = new Set<number>();
  const waiting = [root];
  let incomplete = false;
  for (let read = 0; waiting.length > 0; read++) {
    if (read >= CGROUPS_MAX || pids.size >= PROCESSES_MAX) return { pids, incomplete: true };
    const directory = waiting.pop() ?? root;
    try {
      for (const pid of (await readFile(`${directory}/cgroup.procs`, 'utf8')).split('\n')) {
        if (pid === '') continue;
        if (pids.size >= PROCESSES_MAX) incomplete = true;
        else pids.add(Number(pid));
      }
      for await (const entry of await opendir(directory)) {
        if (!entry.isDirectory()) continue;
        if (waiting.length >= CGROUPS_MAX) {
          incomplete = true;
          break;
        }
        waiting.push(`${directory}/${entry.name}`);
      }
    } catch (error) {
      // A threaded cgroup does not list its processes; those of its parent hold them.
      if (!isGone(error) && (error as NodeJS.ErrnoException).code !== 'EOPNOTSUPP') throw error;
    }
  }
  return { pids, incomplete };
}

function isGone(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ESRCH' || code === 'ENODEV';
}
