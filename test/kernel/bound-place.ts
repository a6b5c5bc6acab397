import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, rm, rmdir } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { readMountNamespace } from '@runtime-enforcer/agent/containers/running-programs';
import { parseWorkloadPolicy, type WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { Slot } from '@runtime-enforcer/agent/containers/container-slots';
import { PROGRAMS } from './guest-files.ts';
import type { Kernel } from './kernel.ts';

const run = promisify(execFile);
const WORK = '/run/places';
const CONTAINER = 'app';
/** Programs of every place, by where they stand in it. */
const FILES: ReadonlyMap<string, string> = new Map([
  ['/usr/bin/allowed', 'tiny'],
  ['/usr/bin/forbidden', 'marker'],
  ['/opt/attack', 'attack'],
  ['/opt/cgroups', 'cgroups'],
  ['/opt/execcheck', 'execcheck'],
  ['/opt/pathlengths', 'pathlengths'],
  ['/opt/execstorm', 'execstorm'],
]);
/** A string of a request to the guest program `place`; bytes where it is not UTF-8. */
export type PlaceText = string | Uint8Array;

/** What is on the list of a place unless a test says otherwise. */
export const LISTED = [...FILES.keys()].filter((path) => path !== '/usr/bin/forbidden');

/** A cgroup, a mount namespace and a root of its own, as a runtime makes them for a container. */
export interface Place {
  readonly name: string;
  readonly cgroup: string;
  readonly cgroupId: bigint;
  readonly level: number;
  readonly mountNamespace: number;
  readonly pid: number;
  /** Starts a program inside: 'ran', 'exit N', 'signal N' or the errno's name. Its output is in `output`. */
  exec(...argv: readonly PlaceText[]): Promise<string>;
  /** Many requests at a time, each as `exec` takes them or as test/guest-programs/place.c describes. */
  askAll(requests: readonly (readonly PlaceText[])[]): Promise<string[]>;
  readonly output: () => string;
  /** Runs a guest program that enters the place from outside, as a runtime's exec does. */
  enter(program: string, ...argv: readonly string[]): Promise<Entered>;
  /** The same in the mount namespace only, from a cgroup outside: as nsenter does. */
  enterMounts(program: string, ...argv: readonly string[]): Promise<Entered>;
  /** The same from a given cgroup. */
  enterFrom(cgroup: string, program: string, ...argv: readonly string[]): Promise<Entered>;
  close(): Promise<void>;
}

/** What became of a guest program that entered a place. */
export interface Entered {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Makes a place with an overlay root, as containers have. Its path in the cgroup tree is `/k/pod/NAME`. */
export async function makePlace(kernel: Kernel, name: string): Promise<Place> {
  const cgroup = `${kernel.tree.root}/k/pod/${name}`;
  await mkdir(cgroup, { recursive: true });
  const base = `${WORK}/${name}`;
  const root = `${base}/root`;
  await mkdir(base, { recursive: true });
  await run('mount', ['-t', 'tmpfs', 'tmpfs', base]);
  for (const directory of ['lower', 'upper', 'work', 'root']) await mkdir(`${base}/${directory}`);
  for (const directory of ['proc', 'host-cgroups', 'tmp', 'mnt', 'dev'])
    await mkdir(`${base}/lower/${directory}`);
  for (const [path, program] of FILES) {
    await cp(`${PROGRAMS}/${program}`, `${base}/lower${path}`, { recursive: true });
  }
  await run('mount', [
    ...['-t', 'overlay', 'overlay'],
    ...['-o', `lowerdir=${base}/lower,upperdir=${base}/upper,workdir=${base}/work`, root],
  ]);
  // Unnamed files are known to tmpfs on every kernel, to overlay on newer ones only.
  await run('mount', ['-t', 'tmpfs', 'tmpfs', `${root}/mnt`]);
  const child = spawn(`${PROGRAMS}/place`, [root, cgroup], { stdio: ['pipe', 'pipe', 'pipe'] });
  const answers = createInterface({ input: child.stdout.setEncoding('latin1') })[Symbol.asyncIterator]();
  let output = '';
  child.stderr.on('data', (data: Buffer) => (output += data.toString('latin1')));
  const answer = async (): Promise<string> => {
    const line = await answers.next();
    if (line.done === true) throw new Error(`place ${name} has ended: ${output}`);
    return line.value;
  };
  const askAll = async (requests: readonly (readonly PlaceText[])[]): Promise<string[]> => {
    output = '';
    child.stdin.write(Buffer.concat(requests.flatMap(encodeRequest)));
    const got: string[] = [];
    while (got.length < requests.length) got.push(await answer());
    return got;
  };
  if ((await answer()) !== 'ready') throw new Error(`no place ${name}: ${output}`);
  const pid = child.pid ?? 0;
  return {
    name,
    cgroup,
    cgroupId: kernel.native.cgroupId(cgroup),
    level: 3,
    mountNamespace: await readMountNamespace(pid),
    pid,
    output: () => output,
    exec: async (...argv) => (await askAll([argv]))[0] ?? '',
    askAll,
    enter: async (program, ...argv) =>
      await entered(`${PROGRAMS}/${program}`, argv, { ENTER_CGROUP: cgroup, ENTER_PID: String(pid) }),
    enterMounts: async (program, ...argv) =>
      await entered(`${PROGRAMS}/${program}`, argv, { ENTER_PID: String(pid) }),
    enterFrom: async (from, program, ...argv) =>
      await entered(`${PROGRAMS}/${program}`, argv, { ENTER_CGROUP: from, ENTER_PID: String(pid) }),
    async close() {
      await ended(child);
      await run('umount', [`${root}/mnt`]);
      await run('umount', [root]);
      await run('umount', [base]);
      await rm(base, { recursive: true, force: true });
      await rmdir(cgroup);
    },
  };
}

function encodeRequest(texts: readonly PlaceText[]): Uint8Array[] {
  const end = Buffer.of(0);
  return [...texts.flatMap((text) => [Buffer.from(text), end]), end];
}

async function entered(
  program: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Entered> {
  return await new Promise((resolve, reject) => {
    execFile(program, argv, { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number')
        reject(new Error(error.message, { cause: error }));
      else resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.stdin?.end();
  await exit;
}

/** A policy of one container. Paths beyond the API's bounds are taken too: the kernel has its own. */
export function policyOf(
  name: string,
  mode: 'monitor' | 'protect',
  allowed: readonly string[],
  otherMountNamespaces: 'deny' | 'unchecked' = 'deny',
): WorkloadPolicy {
  const parsed = parseWorkloadPolicy({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name, namespace: 'kernel' },
    spec: { mode, rulesByContainer: { [CONTAINER]: { executables: { allowed: [], otherMountNamespaces } } } },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return {
    ...parsed.value,
    spec: {
      ...parsed.value.spec,
      rulesByContainer: new Map([
        [CONTAINER, { executables: { allowed: allowed as ExecutablePath[], otherMountNamespaces } }],
      ]),
    },
  };
}

/** Loads a policy and binds the place to it; the agent's own code does both. */
export async function enforce(
  kernel: Kernel,
  place: Place,
  policy: WorkloadPolicy,
): Promise<{ readonly slot: Slot; unbind(): Promise<void> }> {
  const state = await kernel.table.apply(policy);
  if (state.state !== 'ready') throw new Error(`policy not ready: ${state.message ?? ''}`);
  const key = `${policy.metadata.namespace}/${policy.metadata.name}`;
  const answer = await kernel.table.acquire(key, CONTAINER);
  if (answer.kind !== 'enforced') throw new Error(`policy not enforced: ${answer.kind}`);
  const slot = bindPlace(kernel, place, answer.use.policyId, false);
  return {
    slot,
    async unbind() {
      await kernel.slots.release(slot);
      answer.use.release();
      await kernel.table.remove(key);
      await kernel.table.settled();
    },
  };
}

export function bindPlace(kernel: Kernel, place: Place, policyId: number, learn: boolean): Slot {
  const { cgroupId, mountNamespace, pid, level } = place;
  return kernel.bind({ cgroupId, mountNamespace, policyId, learn, initPid: pid }, level);
}

/** A name that no other test uses. */
export function uniqueName(text: string): string {
  return `p${createHash('sha256').update(text).digest('hex').slice(0, 12)}`;
}
