import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { CgroupTree } from './cgroup-tree.ts';

const WAIT_MS = 5_000;

/** A process in a cgroup and a mount namespace of its own, as a container's first process is. */
export interface ExampleContainer {
  readonly pid: number;
  /** Below the root of the tree. */
  readonly cgroupPath: string;
  readonly directory: string;
  readonly mountNamespace: number;
  readonly pod: NriPodSandbox;
  readonly container: NriContainer;
  /** Ends the process and removes its cgroups. */
  remove(): Promise<void>;
}

let count = 0;

/** For tests: starts such a process. Needs root. `command` runs in the new mount namespace. */
export async function startExampleContainer(
  tree: CgroupTree,
  change: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly name?: string;
    readonly command?: readonly string[];
    readonly nested?: string;
  } = {},
): Promise<ExampleContainer> {
  const { labels = {}, name = 'app', command = ['sleep', '1000'], nested } = change;
  const cgroupPath = `/enforcer-test-${process.pid}-${count++}`;
  const directory = `${tree.root}${cgroupPath}`;
  const directories = nested === undefined ? [directory] : [directory, `${directory}/${nested}`];
  for (const each of directories) mkdirSync(each);
  const child = spawn('unshare', ['--mount', ...command], { stdio: 'ignore' });
  const { pid } = child;
  if (pid === undefined) throw new Error('unshare could not be started; install util-linux');
  writeFileSync(`${directories.at(-1) ?? directory}/cgroup.procs`, String(pid));
  const mountNamespace = await otherMountNamespace(pid);
  const id = `container-${pid}-${count}`;
  return {
    pid,
    cgroupPath,
    directory,
    mountNamespace,
    pod: {
      id: `sandbox-${id}`,
      name: `web-${count}`,
      uid: `uid-${id}`,
      namespace: 'shop',
      labels: new Map(Object.entries(labels)),
      annotations: new Map(),
      cgroupParent: '',
      runtimeHandler: '',
      pid: 0,
    },
    container: {
      id,
      podSandboxId: `sandbox-${id}`,
      name,
      state: 'running',
      labels: new Map(),
      annotations: new Map(),
      args: [],
      cgroupsPath: cgroupPath,
      pid,
      image: 'example:1',
    },
    async remove() {
      await end(child);
      for (const each of directories.reverse()) await removeCgroup(each);
    },
  };
}

async function otherMountNamespace(pid: number): Promise<number> {
  const own = readlinkSync('/proc/self/ns/mnt');
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const link = readlinkSync(`/proc/${pid}/ns/mnt`);
    const program = readlinkSync(`/proc/${pid}/exe`);
    if (link !== own && !program.endsWith('/unshare')) return Number(/\d+/.exec(link)?.[0]);
    if (performance.now() > deadline)
      throw new Error('the example process got no mount namespace of its own');
    await delay(5);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** A cgroup whose last process has just ended is busy for a moment. */
async function removeCgroup(directory: string): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    try {
      rmdirSync(directory);
      return;
    } catch (error) {
      if (performance.now() > deadline) {
        const left = readFileSync(`${directory}/cgroup.procs`, 'utf8');
        throw new Error(`cgroup ${directory} cannot be removed; its processes: ${left}`, { cause: error });
      }
      await delay(10);
    }
  }
}
