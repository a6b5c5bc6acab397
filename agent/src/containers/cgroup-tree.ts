import { quote } from '@runtime-enforcer/api/field-error';
import { readFile } from 'node:fs/promises';
import { isNativeError, type Native } from '../kernel/native.ts';
import { CgroupPathError, resolveCgroupPath } from './cgroup-path.ts';

const CGROUP2_MAGIC = 0x63677270;
const TMPFS_MAGIC = 0x01021994;
/** The reference reads no more lines of /proc/cgroups than there are hierarchies. */
const SUBSYSTEMS_MAX = 14;
/** The host's view, also from a container with the host's pid namespace; then our own. */
const MOUNT_POINTS = ['/proc/1/root/sys/fs/cgroup', '/sys/fs/cgroup'] as const;

/** Id of the topmost cgroup of every hierarchy. */
const ROOT_CGROUP_ID = 1n;
/** A node that is a container lies this deep at most: kubelet's and the container engine's levels. */
const HIDDEN_LEVELS_MAX = 12;

/** Where the cgroups of containers are found on this node. */
export interface CgroupTree {
  /** Directory of the hierarchy's root. */
  readonly root: string;
  /** cgroup v1: index of the hierarchy that is read; -1 with v2. */
  readonly subsystem: number;
  /**
   * Levels that may lie above the root: 0 on a node, unknown where the node itself is a container, whose root is
   * somewhere in another tree.
   */
  readonly hiddenLevelsMax: number;
}

/** A container's cgroup, which exists. */
export interface ContainerCgroup {
  /** Below the root, beginning with `/`. */
  readonly path: string;
  readonly directory: string;
  readonly id: bigint;
  /** By its path: the root is level 0. */
  readonly level: number;
}

/**
 * Finds the hierarchy that runtimes put containers into: the unified one, or on a v1 or hybrid host the one of the
 * memory controller, which every runtime uses. Rejects with an Error that says what is missing.
 */
export async function openCgroupTree(
  native: Pick<Native, 'filesystemType' | 'isMountPoint' | 'cgroupId'>,
): Promise<CgroupTree> {
  const mountPoint = MOUNT_POINTS.find((path) => isReadable(native, path));
  if (mountPoint === undefined) {
    throw new Error(
      'no cgroup file system at /sys/fs/cgroup; mount it there, and into the container of the agent',
    );
  }
  const { magic } = native.filesystemType(mountPoint);
  if (magic === CGROUP2_MAGIC) return openedTree(native, mountPoint, -1);
  if (magic !== TMPFS_MAGIC) {
    throw new Error(
      `${mountPoint} holds neither cgroup v2 nor the directories of cgroup v1; mount one of them there`,
    );
  }
  const root = `${mountPoint}/memory`;
  if (!native.isMountPoint(root)) {
    throw new Error(`the memory controller of cgroup v1 is not mounted at ${root}; mount it there`);
  }
  const subsystem = memorySubsystem(await readFile('/proc/cgroups', 'utf8'));
  if (subsystem === undefined)
    throw new Error('/proc/cgroups names no memory controller; boot with it enabled');
  return openedTree(native, root, subsystem);
}

function openedTree(native: Pick<Native, 'cgroupId'>, root: string, subsystem: number): CgroupTree {
  const hiddenLevelsMax = native.cgroupId(root) === ROOT_CGROUP_ID ? 0 : HIDDEN_LEVELS_MAX;
  return { root, subsystem, hiddenLevelsMax };
}

/** Index of the memory controller by the text of /proc/cgroups, whose lines stand in the kernel's order. */
export function memorySubsystem(text: string): number | undefined {
  const names = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .slice(0, SUBSYSTEMS_MAX)
    .map((line) => line.split(/\s/, 1)[0]);
  const index = names.indexOf('memory');
  return index < 0 ? undefined : index;
}

/**
 * The cgroup that the runtime named for a container; where the name has no clear meaning, as a relative path has
 * none, that of its process. Rejects with a CgroupPathError if neither tells, and with an Error that names the path
 * if it is not there.
 */
export async function findContainerCgroup(
  native: Pick<Native, 'cgroupId'>,
  tree: CgroupTree,
  cgroupsPath: string,
  pid: number,
): Promise<ContainerCgroup> {
  const path = await pathOf(tree, cgroupsPath, pid);
  const directory = `${tree.root}${path}`;
  return { path, directory, id: idOf(native, tree, directory), level: path.split('/').length - 1 };
}

/** The id that a cgroup of this path has now; 0 where there is none. Throws a NativeError for any other failure. */
export function presentCgroupId(
  native: Pick<Native, 'cgroupId'>,
  { root }: Pick<CgroupTree, 'root'>,
  path: string,
): bigint {
  if (path === '') return 0n;
  try {
    return native.cgroupId(`${root}${path}`);
  } catch (error) {
    if (isNativeError(error) && error.code === 'ENOENT') return 0n;
    throw error;
  }
}

/** Where the tree is not the whole node's, that is why a container is not in it. */
function idOf(native: Pick<Native, 'cgroupId'>, tree: CgroupTree, directory: string): bigint {
  try {
    return native.cgroupId(directory);
  } catch (error) {
    if (tree.hiddenLevelsMax === 0 || !isNativeError(error) || error.code !== 'ENOENT') throw error;
    throw new Error(
      `there is no cgroup ${quote(directory)}: ${tree.root} shows not the node's cgroups but those below one of ` +
        "them, as a container with a cgroup namespace of its own sees them; mount the node's /sys/fs/cgroup there, or " +
        "let the agent share the node's pid namespace (hostPID: true)",
      { cause: error },
    );
  }
}

async function pathOf(tree: CgroupTree, cgroupsPath: string, pid: number): Promise<string> {
  try {
    return resolveCgroupPath(cgroupsPath);
  } catch (error) {
    if (!(error instanceof CgroupPathError) || pid === 0) throw error;
    const path = cgroupIn(await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => ''), tree);
    // The root is everybody's, and a path that climbs is told to a reader in another cgroup namespace.
    if (path === undefined || path === '/' || path.split('/').includes('..')) throw error;
    return path;
  }
}

/** The path that the text of /proc/<pid>/cgroup names for the hierarchy. */
export function cgroupIn(text: string, { subsystem }: Pick<CgroupTree, 'subsystem'>): string | undefined {
  for (const line of text.split('\n')) {
    const [, hierarchy, controllers, path] = /^(\d+):([^:]*):(.*)$/s.exec(line) ?? [];
    if (path === undefined) continue;
    if (subsystem < 0 ? hierarchy === '0' : controllers?.split(',').includes('memory')) return path;
  }
  return undefined;
}

function isReadable(native: Pick<Native, 'filesystemType'>, path: string): boolean {
  try {
    native.filesystemType(path);
    return true;
  } catch {
    return false;
  }
}
