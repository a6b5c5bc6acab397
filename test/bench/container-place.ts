import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { NriContainer, NriPodSandbox } from '@runtime-enforcer/agent/nri/messages';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_CONTAINER, WORKLOAD_NAMESPACE } from './workload.ts';

const PROGRAMS = '/run/payload';
/** Where a place has the program that starts others over and over. */
export const STORM = '/execstorm';

/** A place as a container runtime makes it: a cgroup, a mount namespace, and a pivoted overlay root. */
export interface ContainerPlace {
  readonly pod: NriPodSandbox;
  readonly container: NriContainer;
  /** Starts a program in it; resolves with what `place` answers ("ran") and what the program wrote. */
  run(command: readonly string[]): Promise<{ readonly answer: string; readonly output: string }>;
  /** Ends its first process. */
  end(): Promise<void>;
}

/**
 * Makes a place below systemd's slices, four levels deep as a burstable pod's container is.
 *
 * @param name its pod's name and part of its cgroup's
 * @param policy what the pod's label names
 * @param programs paths at which it has the smallest program
 */
export async function createPlace(
  name: string,
  policy: string | undefined,
  programs: readonly string[],
): Promise<ContainerPlace> {
  // In a slice's name a dash is a level.
  const slice = `kubepods-burstable-pod${name.replaceAll('-', '_')}.slice`;
  const cgroup = `/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/${slice}/cri-containerd-${name}.scope`;
  mkdirSync(cgroup, { recursive: true });
  const root = overlayRoot(name, programs);
  const child = spawn(join(PROGRAMS, 'place'), [root, cgroup], { stdio: ['pipe', 'pipe', 'pipe'] });
  const { pid } = child;
  if (pid === undefined) throw new Error('place cannot be started');
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const output: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const answer = async (): Promise<string> => {
    const { value, done } = await answers.next();
    if (done === true) throw new Error(`place ended: ${output.join('')}`);
    return value;
  };
  if ((await answer()) !== 'ready') throw new Error('place did not get ready');
  return {
    pod: podOf(name, policy),
    container: containerOf(name, `${slice}:cri-containerd:${name}`, pid),
    async run(command) {
      output.length = 0;
      child.stdin.write(Buffer.from(`${command.join('\0')}\0\0`));
      const came = await answer();
      return { answer: came, output: output.join('') };
    },
    async end() {
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.stdin.end();
      await ended;
    },
  };
}

/** A lower layer with the programs and an empty upper one, both in memory. */
function overlayRoot(name: string, programs: readonly string[]): string {
  const base = `/run/bench/${name}`;
  const [lower, upper, work, root] = ['lower', 'upper', 'work', 'root'].map((part) => join(base, part));
  if (lower === undefined || root === undefined) throw new Error('no root');
  mkdirSync(base, { recursive: true });
  command(['mount', '-t', 'tmpfs', 'tmpfs', base]);
  for (const directory of [lower, upper, work, root, join(lower, 'proc')])
    mkdirSync(String(directory), { recursive: true });
  for (const path of programs) {
    mkdirSync(dirname(join(lower, path)), { recursive: true });
    copyFileSync(join(PROGRAMS, 'tiny'), join(lower, path));
  }
  copyFileSync(join(PROGRAMS, 'execstorm'), join(lower, STORM));
  const layers = `lowerdir=${lower},upperdir=${String(upper)},workdir=${String(work)}`;
  command(['mount', '-t', 'overlay', '-o', layers, 'overlay', root]);
  return root;
}

function command(argv: readonly [string, ...string[]]): void {
  const [program, ...args] = argv;
  const { status, stderr } = spawnSync(program, args);
  if (status !== 0) throw new Error(`${argv.join(' ')}: ${String(stderr)}`);
}

/** A pod as the runtime tells of it. */
export function podOf(name: string, policy: string | undefined): NriPodSandbox {
  return {
    id: `pod-${name}`,
    name,
    uid: `uid-${name}`,
    namespace: WORKLOAD_NAMESPACE,
    labels: new Map(policy === undefined ? [] : [[POLICY_LABEL, policy]]),
    annotations: new Map(),
    cgroupParent: '',
    runtimeHandler: 'runc',
    pid: 0,
  };
}

/** The pod's container as the runtime tells of it when it starts. */
export function containerOf(name: string, cgroupsPath: string, pid: number): NriContainer {
  return {
    id: `container-${name}`,
    podSandboxId: `pod-${name}`,
    name: WORKLOAD_CONTAINER,
    state: 'created',
    labels: new Map(),
    annotations: new Map(),
    args: [],
    cgroupsPath,
    pid,
    image: 'bench/image:1',
  };
}
