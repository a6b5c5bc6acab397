import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { BoundContainer, ContainerState } from '../containers/bound-container.ts';
import { PolicyNotReadyError, type ContainerBinder } from '../containers/container-binder.ts';
import type { RunningProgram } from '../containers/running-programs.ts';
import type { ExecEvent, KernelEnforcer, Override, RecordKey, SeenEntry } from '../kernel/enforcer.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { PolicyState } from '../policies/policy-state.ts';
import type { KernelReadings } from '../server/observer-server.ts';
import type { LoadedPolicies } from '../policies/policy-table.ts';

/**
 * Test support: the kernel side as the rest of the agent sees it, in memory. It binds what it is given and decides
 * nothing; tests say what the kernel reports.
 */
export interface FakeKernel {
  readonly enforcer: KernelEnforcer;
  readonly table: LoadedPolicies;
  readonly binder: ContainerBinder;
  /** As what was bound asks for. */
  readonly readings: KernelReadings;
  /** Policies in the order of their loading. */
  readonly applied: WorkloadPolicy[];
  readonly removed: string[];
  readonly commits: { count: number };
  /** What `running` finds, by container id. */
  readonly programs: Map<string, readonly RunningProgram[]>;
  /** What `bind` rejects with, by container name. */
  readonly bindErrors: Map<string, Error>;
  /** Why a policy fails, by `namespace/name`. */
  readonly policyErrors: Map<string, string>;
  readonly totals: Map<number, bigint>;
  seen: SeenEntry[];
  attached: boolean;
  /** Whether every policy that there is was told. */
  completed: boolean;
  deliver(events: readonly ExecEvent[]): void;
}

export function createFakeKernel(): FakeKernel {
  const containers = new Map<string, BoundContainer>();
  const states = new Map<string, PolicyState>();
  let slots = 0;
  let override: Override = 'none';
  let onBatch: ((events: readonly ExecEvent[]) => void) | undefined;

  const stateOf = (policy: string | undefined): ContainerState => {
    if (policy === undefined) return 'learning';
    return states.get(policy)?.state === 'ready' ? 'enforced' : 'waiting';
  };
  const put = (pod: NriPodSandbox, container: NriContainer): BoundContainer => {
    const label = pod.labels.get(POLICY_LABEL);
    const policy = label === undefined ? undefined : `${pod.namespace}/${label}`;
    const known = containers.get(container.id);
    if (known !== undefined) return known;
    const bound = fakeContainer({
      ...{ slot: ++slots, containerId: container.id, containerName: container.name },
      ...{ podName: pod.name, namespace: pod.namespace, labels: pod.labels, image: container.image },
      workload: workloadFromPod(pod.name, pod.labels),
      state: stateOf(policy),
      ...(policy !== undefined && { policy }),
    });
    containers.set(container.id, bound);
    return bound;
  };
  const notReady = (policy: string): PolicyNotReadyError =>
    new PolicyNotReadyError(policy, 'unknown', `policy ${policy} is not loaded`);

  const fake: FakeKernel = {
    applied: [],
    removed: [],
    commits: { count: 0 },
    programs: new Map(),
    bindErrors: new Map(),
    policyErrors: new Map(),
    totals: new Map(),
    seen: [],
    attached: true,
    completed: false,
    deliver: (events) => onBatch?.(events),
    readings: {
      bindings: () => Promise.resolve(Array.from(containers.values(), fakeBinding)),
      presentCgroupId: ({ cgroupId }) => cgroupId,
    },
    table: {
      apply(policy) {
        const key = `${policy.metadata.namespace}/${policy.metadata.name}`;
        fake.applied.push(policy);
        const message = fake.policyErrors.get(key);
        let paths = 0;
        for (const { executables } of policy.spec.rulesByContainer.values())
          paths += executables.allowed.length;
        const state: PolicyState = {
          ...{
            state: message === undefined ? 'ready' : 'failed',
            mode: policy.spec.mode,
            paths,
            digest: 'd',
          },
          ...(message !== undefined && { message }),
        };
        states.set(key, state);
        return Promise.resolve(state);
      },
      refuse(key, message) {
        const before = states.get(key) ?? ({ mode: 'monitor', paths: 0, digest: '' } as const);
        const state: PolicyState = { ...before, state: 'failed', message };
        states.set(key, state);
        return Promise.resolve(state);
      },
      remove(key) {
        fake.removed.push(key);
        states.delete(key);
        return Promise.resolve();
      },
      complete: () => void (fake.completed = true),
      state: (key) => states.get(key),
      states: () => states,
    },
    binder: {
      async bind(pod, container) {
        await Promise.resolve();
        const error = fake.bindErrors.get(container.name);
        if (error !== undefined) throw error;
        const bound = put(pod, container);
        if (bound.state === 'waiting') throw notReady(bound.policy ?? '');
        return { state: bound.state, container: bound };
      },
      unbind(containerId) {
        containers.delete(containerId);
        return Promise.resolve();
      },
      policyChanged(key) {
        const changed: BoundContainer[] = [];
        for (const container of containers.values()) {
          if (container.policy !== key || container.state !== 'waiting') continue;
          const bound = { ...container, state: stateOf(key) };
          containers.set(container.containerId, bound);
          changed.push(bound);
        }
        return Promise.resolve(changed);
      },
      reconcile(pods, told) {
        const before = new Set(containers.keys());
        const boundLate: BoundContainer[] = [];
        const waiting: { container: BoundContainer; error: PolicyNotReadyError }[] = [];
        for (const container of told) {
          const pod = pods.find(({ id }) => id === container.podSandboxId);
          if (pod === undefined || before.has(container.id)) continue;
          const bound = put(pod, container);
          if (bound.state === 'waiting')
            waiting.push({ container: bound, error: notReady(bound.policy ?? '') });
          else boundLate.push(bound);
        }
        return Promise.resolve({
          ...{ boundLate, kept: before.size, repaired: [], strays: 0, waiting, failed: [], gone: 0 },
        });
      },
      running: (container) =>
        Promise.resolve({
          container,
          programs: fake.programs.get(container.containerId) ?? [],
          incomplete: false,
        }),
      containers: () => [...containers.values()],
      container: (containerId) => containers.get(containerId),
      lookup: (slot, generation) =>
        [...containers.values()].find((each) => each.slot === slot && each.generation === generation),
    },
    enforcer: {
      attachment: {
        ...{ programs: ['check_lsm'], kind: 'lsm', reason: 'the BPF LSM is active.', kernel: '6.12.0' },
        ...{ pathBytesMax: 4095, adopted: 'fresh' },
      },
      // The agent never looks into the maps itself.
      maps: {} as KernelEnforcer['maps'],
      settings: {} as KernelEnforcer['settings'],
      outcomes: () => Promise.resolve({ allowed: 5n, denied: 2n }),
      recursionMisses: () => 0n,
      containerTotals: (slot) => ({ violations: fake.totals.get(slot) ?? 0n, learned: 0n }),
      seen: () => Promise.resolve(fake.seen),
      startEvents(_lookup, batch) {
        onBatch = batch;
      },
      attached: () => Promise.resolve(fake.attached),
      override: () => override,
      setOverride(value) {
        override = value;
      },
      pending: false,
      commit() {
        fake.commits.count++;
        return Promise.resolve();
      },
      stop: () => Promise.resolve(),
    },
  };
  return fake;
}

function fakeBinding({ cgroupId, slot, generation, mountNamespace, policyId, state }: BoundContainer) {
  return {
    ...{ cgroupId, slot, generation, mountNamespace, policyId },
    ...{ indexed: true, slotCgroupId: cgroupId, learning: state === 'learning', mode: 'protect' as const },
    namespaceIndexed: true,
  };
}

/** A container as it is after binding. */
export function fakeContainer(more: Partial<BoundContainer> = {}): BoundContainer {
  return {
    ...{ slot: 1, generation: 1, policyId: 1, containerId: 'c1', containerName: 'main', podUid: 'u1' },
    ...{ podName: 'web-1', namespace: 'shop', labels: new Map<string, string>(), image: 'shop/web:1' },
    workload: { kind: 'Pod', name: 'web-1', truncated: false },
    ...{ cgroupId: 7n, cgroupPath: '/kubepods/c1', mountNamespace: 4_026_532_000, pid: 100 },
    ...{ listed: true, state: 'enforced' },
    ...more,
  };
}

/** A record of the kernel about the first exec of its kind. */
export function fakeEvent(container: BoundContainer | undefined, more: Partial<ExecEvent> = {}): ExecEvent {
  const { slot = 9, generation = 1 } = container ?? {};
  return {
    ...{ kind: 'violation', key: fakeKey('1'), timeMs: 1_000, slot, generation, cgroupId: 7n, container },
    ...{ path: new TextEncoder().encode('/usr/bin/id'), mode: 'protect', reason: 'Unlisted' },
    ...{ origin: 'exec', pid: 200, parentPid: 100, uid: 0, command: 'sh', parentCommand: 'runc' },
    ...more,
  };
}

/** A count of the kernel, of the records with that key. */
export function fakeSeen(
  container: BoundContainer,
  key: string,
  count: bigint,
  more: Partial<SeenEntry> = {},
) {
  const { slot, generation } = container;
  const entry: SeenEntry = {
    ...{ key: fakeKey(key), slot, generation, container, pathHash: 1n, mode: 'protect', reason: 'Unlisted' },
    ...{ count, firstMs: 1_000, lastMs: 2_000 },
    ...more,
  };
  return entry;
}

export function fakeKey(text: string): RecordKey {
  return text as RecordKey;
}

/** Counts by name, and a log that keeps its lines. */
export function fakeReporting(): {
  counters: AgentCounters;
  log: Logger;
  lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[];
} {
  const counts = new Map<string, number>();
  const lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[] = [];
  const note = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: { ...fields } });
  return {
    counters: {
      add: (name, by = 1) => counts.set(name, (counts.get(name) ?? 0) + by),
      value: (name) => counts.get(name) ?? 0,
    },
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    lines,
  };
}
