import { randomUUID } from 'node:crypto';
import { readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TOOLBOX_IMAGE } from '../images/names.ts';
import { eventually } from './eventually.ts';
import { CriError, type ContainerStatus, type Cri, type MountConfig, type SandboxConfig } from './cri.ts';

const LOG_ROOT = '/run/pods';
const CGROUP_ROOT = '/sys/fs/cgroup';
/** Where kubelet's cgroupfs driver puts pods without resource requests. */
const POD_CGROUP_PARENT = '/kubepods/besteffort';
const EXEC_BUDGET_S = 30;

/** One container as a test describes it; what is left out is as small as it can be. */
export interface ContainerSpec {
  readonly name: string;
  /** The toolbox when left out. */
  readonly image?: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly mounts?: readonly MountConfig[];
  readonly privileged?: boolean;
  readonly capabilities?: readonly string[];
  /** Root when left out. */
  readonly runAsUser?: number;
  /** Waits until it has exited with 0 before the next one starts, as kubelet does with init containers. */
  readonly init?: boolean;
}

export interface PodSpec {
  readonly name: string;
  /** `default` when left out. */
  readonly namespace?: string;
  /** Random when left out. */
  readonly uid?: string;
  /** What its cgroup is named by: the uid when left out, and for a static pod the hash of its file. */
  readonly cgroupName?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** `runc` when left out. */
  readonly runtime?: 'runc' | 'crun';
  readonly hostPid?: boolean;
  /** Started one after another. */
  readonly containers: readonly ContainerSpec[];
}

export interface StartedContainer {
  readonly id: string;
  readonly spec: ContainerSpec;
  readonly attempt: number;
}

export interface Pod {
  readonly spec: PodSpec;
  readonly uid: string;
  readonly sandboxId: string;
  readonly config: SandboxConfig;
  /** By name; a restart replaces the entry. */
  readonly containers: Map<string, StartedContainer>;
}

interface Started {
  readonly started: true;
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What became of a program that the runtime was asked to start in a container. */
export type Execution =
  | Started
  /** The runtime could not start it; the reason is the runtime's own. */
  | { readonly started: false; readonly reason: string };

/**
 * Starts a pod as kubelet would: its sandbox in the pod's cgroup, then its containers in order. It has the host's
 * network, so nothing has to be set up for it.
 *
 * @throws CriError if the sandbox or a container is refused; what was made is removed then
 */
export async function runPod(cri: Cri, spec: PodSpec): Promise<Pod> {
  const pod = await runSandbox(cri, spec);
  try {
    for (const container of spec.containers) {
      const { id } = await startContainer(cri, pod, container);
      if (container.init === true) await expectSuccess(cri, id, container.name);
    }
    return pod;
  } catch (cause) {
    await removePod(cri, pod);
    throw cause;
  }
}

/** Starts a pod's sandbox only. */
export async function runSandbox(cri: Cri, spec: PodSpec): Promise<Pod> {
  const uid = spec.uid ?? randomUUID();
  const namespace = spec.namespace ?? 'default';
  const config: SandboxConfig = {
    metadata: { name: spec.name, uid, namespace },
    hostname: '',
    logDirectory: join(LOG_ROOT, uid),
    labels: {
      'io.kubernetes.pod.name': spec.name,
      'io.kubernetes.pod.namespace': namespace,
      'io.kubernetes.pod.uid': uid,
      ...spec.labels,
    },
    annotations: spec.annotations ?? {},
    linux: {
      cgroupParent: podCgroup(spec, uid),
      securityContext: {
        namespaceOptions: namespaceOptions(spec),
        privileged: spec.containers.some(({ privileged }) => privileged === true),
      },
    },
  };
  const request = { config, runtimeHandler: spec.runtime ?? 'runc' };
  const { podSandboxId } = await cri.call('RunPodSandbox', request);
  return { spec, uid, sandboxId: podSandboxId, config, containers: new Map() };
}

/**
 * Creates and starts one more container in a pod, or a name's next attempt.
 *
 * @throws CriError if the runtime refuses it; a container that was created stays, as it does for kubelet
 */
export async function startContainer(cri: Cri, pod: Pod, spec: ContainerSpec): Promise<StartedContainer> {
  const previous = pod.containers.get(spec.name);
  const attempt = previous === undefined ? 0 : previous.attempt + 1;
  const { containerId } = await cri.call('CreateContainer', {
    podSandboxId: pod.sandboxId,
    sandboxConfig: pod.config,
    config: {
      metadata: { name: spec.name, attempt },
      image: { image: spec.image ?? TOOLBOX_IMAGE },
      command: spec.command,
      envs: Object.entries(spec.env ?? {}).map(([key, value]) => ({ key, value: Buffer.from(value) })),
      mounts: spec.mounts ?? [],
      labels: {
        'io.kubernetes.container.name': spec.name,
        'io.kubernetes.pod.name': pod.config.metadata.name,
        'io.kubernetes.pod.namespace': pod.config.metadata.namespace,
        'io.kubernetes.pod.uid': pod.uid,
      },
      annotations: {},
      logPath: logName(spec.name, attempt),
      linux: {
        securityContext: {
          capabilities: { addCapabilities: spec.capabilities ?? [] },
          privileged: spec.privileged ?? false,
          namespaceOptions: namespaceOptions(pod.spec),
          runAsUser: { value: spec.runAsUser ?? 0 },
        },
      },
    },
  });
  const started = { id: containerId, spec, attempt };
  pod.containers.set(spec.name, started);
  await cri.call('StartContainer', { containerId });
  return started;
}

/** Ends a container at once, removes it, and starts it again, as kubelet restarts one. */
export async function restartContainer(cri: Cri, pod: Pod, name: string): Promise<StartedContainer> {
  const { id, spec } = containerOf(pod, name);
  await cri.call('StopContainer', { containerId: id, timeout: 0 });
  await cri.call('RemoveContainer', { containerId: id });
  return await startContainer(cri, pod, spec);
}

/**
 * Runs a program in a running container, as `kubectl exec` and exec probes do.
 *
 * @throws CriError if the runtime fails in another way than refusing the program
 */
export async function execIn(cri: Cri, pod: Pod, name: string, argv: readonly string[]): Promise<Execution> {
  const { id } = containerOf(pod, name);
  try {
    const { exitCode, stdout, stderr } = await cri.call('ExecSync', {
      containerId: id,
      cmd: argv,
      timeout: EXEC_BUDGET_S,
    });
    const execution = {
      started: true,
      exitCode,
      stdout: stdout.toString(),
      stderr: stderr.toString(),
    } as const;
    return failedInContainer(execution) ?? execution;
  } catch (cause) {
    if (cause instanceof CriError && cause.message.includes('failed to exec in container')) {
      return { started: false, reason: cause.message };
    }
    throw cause;
  }
}

/** An exec that fails is told by the runtime's own process in the container: runc exits with 255, crun with 1. */
function failedInContainer({ exitCode, stdout, stderr }: Started): Execution | undefined {
  const isRuntimeCode = exitCode === 255 || exitCode === 1;
  const isRuntimeText = /^exec (?:`.*`|\/\S+): .+\n?$/.test(stdout + stderr);
  return isRuntimeCode && isRuntimeText ? { started: false, reason: stdout + stderr } : undefined;
}

/** Waits until a container has ended. */
export async function awaitExit(cri: Cri, containerId: string, budgetMs = 30_000): Promise<ContainerStatus> {
  const end = Date.now() + budgetMs;
  for (;;) {
    const { status } = await cri.call('ContainerStatus', { containerId });
    if (status.state === 'CONTAINER_EXITED') return status;
    if (Date.now() > end) throw new Error(`container ${containerId} is ${status.state} after ${budgetMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What a container's current attempt wrote, line by line without the runtime's prefix. */
export async function containerLog(pod: Pod, name: string): Promise<string> {
  const { attempt } = containerOf(pod, name);
  const text = await readFile(join(pod.config.logDirectory, logName(name, attempt)), 'utf8');
  return text.replaceAll(/^\S+ (?:stdout|stderr) [FP] /gm, '');
}

/** Ends and removes everything of a pod. */
export async function removePod(cri: Cri, pod: Pod): Promise<void> {
  // A container that ends by itself just then makes it fail; kubelet asks again, too.
  await eventually(
    `pod ${pod.spec.name} is stopped`,
    async () => await cri.call('StopPodSandbox', { podSandboxId: pod.sandboxId }),
  );
  await cri.call('RemovePodSandbox', { podSandboxId: pod.sandboxId });
  pod.containers.clear();
  await rm(pod.config.logDirectory, { recursive: true, force: true });
  // The pod's own cgroup is kubelet's to remove. The last process may still be leaving it.
  await rmdir(join(CGROUP_ROOT, podCgroup(pod.spec, pod.uid))).catch(() => undefined);
}

/** The cgroup directory of a pod's container, where cgroup version 2 is mounted. */
export function containerCgroup(pod: Pod, name: string): string {
  return join(CGROUP_ROOT, podCgroup(pod.spec, pod.uid), containerOf(pod, name).id);
}

/** @throws Error if the pod has no such container */
export function containerOf(pod: Pod, name: string): StartedContainer {
  const found = pod.containers.get(name);
  if (found === undefined) throw new Error(`pod ${pod.spec.name} has no container ${name}`);
  return found;
}

function podCgroup({ cgroupName }: PodSpec, uid: string): string {
  return `${POD_CGROUP_PARENT}/pod${cgroupName ?? uid}`;
}

function logName(container: string, attempt: number): string {
  return `${container}_${attempt}.log`;
}

function namespaceOptions(spec: PodSpec): { network: 'NODE'; pid: 'NODE' | 'CONTAINER'; ipc: 'POD' } {
  return { network: 'NODE', pid: spec.hostPid === true ? 'NODE' : 'CONTAINER', ipc: 'POD' };
}

async function expectSuccess(cri: Cri, containerId: string, name: string): Promise<void> {
  const { exitCode, reason } = await awaitExit(cri, containerId);
  if (exitCode !== 0) throw new Error(`init container ${name} ended with ${exitCode} (${reason})`);
}
