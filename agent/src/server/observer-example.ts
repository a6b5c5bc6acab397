import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { NodeState, ReportedBinding, ReportedViolation } from '@runtime-enforcer/rpc/reported';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { PolicyState } from '../policies/policy-state.ts';
import { createCumulativeLog, type KeptLog } from '../violations/cumulative-log.ts';
import type { ObserverSources } from './observer-server.ts';

/** What a node has to tell, as a test sets it. */
export interface ExampleSources extends Omit<ObserverSources, 'containers'> {
  readonly nodeState: { -readonly [K in keyof NodeState]: NodeState[K] };
  readonly states: Map<string, PolicyState>;
  readonly bound: BoundContainer[];
  readonly containers: () => BoundContainer[];
  readonly inKernel: ReportedBinding[];
  readonly violations: KeptLog<ReportedViolation>;
  readonly observations: KeptLog<NodeObservation>;
}

export function exampleSources(incarnation = 'one life'): ExampleSources {
  const nodeState: NodeState = {
    nodeName: 'node-1',
    agentVersion: '0.1.0',
    startedAt: '2026-01-31T12:00:00.000Z',
    attachment: 'lsm',
    kernel: '6.12',
    attached: true,
    degraded: '',
    override: 'none',
    runtimeConnected: true,
    policiesLoaded: true,
  };
  const states = new Map<string, PolicyState>();
  const bound: BoundContainer[] = [];
  const inKernel: ReportedBinding[] = [];
  return {
    nodeState,
    node: () => nodeState,
    states,
    policies: () => states,
    bound,
    containers: () => bound,
    inKernel,
    kernel: { bindings: () => Promise.resolve(inKernel), presentCgroupId: ({ cgroupId }) => cgroupId },
    violations: createCumulativeLog<ReportedViolation>({ incarnation }),
    observations: createCumulativeLog<NodeObservation>({ incarnation }),
  };
}

export function examplePolicy(changed: Partial<PolicyState> = {}): PolicyState {
  return { state: 'ready', mode: 'monitor', paths: 3, digest: 'd1', ...changed };
}

export function exampleViolation(changed: Partial<ReportedViolation> = {}): ReportedViolation {
  return {
    namespace: 'shop',
    policyName: 'web',
    podName: 'web-1',
    containerName: 'app',
    executablePath: '/bin/sh',
    nodeName: 'node-1',
    action: 'protect',
    occurrences: 1,
    firstObservedTimestamp: '2026-01-31T12:00:00.000Z',
    lastObservedTimestamp: '2026-01-31T12:00:00.000Z',
    ...changed,
  };
}

export function exampleContainer(changed: Partial<BoundContainer> = {}): BoundContainer {
  return {
    slot: 1,
    generation: 1,
    policyId: 1,
    containerId: 'c1',
    containerName: 'app',
    podUid: 'uid-1',
    podName: 'web-1',
    namespace: 'shop',
    labels: new Map([['app', 'web']]),
    image: 'registry.example/web:1',
    workload: { kind: 'Deployment', name: 'web', truncated: false },
    cgroupId: 7n,
    cgroupPath: '/kubepods/web-1',
    mountNamespace: 0,
    pid: 100,
    policy: 'shop/web',
    listed: true,
    state: 'enforced',
    ...changed,
  };
}
