import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { openCgroupTree } from '@runtime-enforcer/agent/containers/cgroup-tree';
import { loadNative } from '@runtime-enforcer/agent/kernel/native';

const V2 = -1;
/** Beside those of other runs. */
const NAME = `runtime-enforcer-bench-agent-${process.pid}`;

/** A cgroup of its own, to which everything is charged that its process causes, in the kernel too. */
export interface MemoryCgroup {
  /** What a command has to begin with to run there. */
  readonly enter: readonly string[];
  /** Charged now, in bytes; with pages of files that were read from there first. */
  chargedBytes(): Promise<number>;
  /** To be called when no process is there any more. */
  remove(): Promise<void>;
}

/**
 * Makes a cgroup with the memory controller, of v2 or, where the host has it there, of v1: both charge the same pages,
 * memory of BPF maps included.
 *
 * @throws Error where this process may make none, or v2 has the controller for nobody
 */
export async function createMemoryCgroup(): Promise<MemoryCgroup> {
  const { root, subsystem } = await openCgroupTree(loadNative());
  if (subsystem === V2) await writeFile(`${root}/cgroup.subtree_control`, '+memory');
  const directory = `${root}/${NAME}`;
  const charged = `${directory}/${subsystem === V2 ? 'memory.current' : 'memory.usage_in_bytes'}`;
  await mkdir(directory, { recursive: true });
  return {
    enter: ['sh', '-c', `echo $$ > ${directory}/cgroup.procs; exec "$@"`, 'sh'],
    chargedBytes: async () => Number(await readFile(charged, 'utf8')),
    remove: async () => await rmdir(directory),
  };
}
