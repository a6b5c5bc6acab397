import type { BoundContainer } from '@runtime-enforcer/agent/containers/bound-container';
import type { ExecEvent, RecordKey } from '@runtime-enforcer/agent/kernel/enforcer';

/** Where a synthetic exec happens. */
export interface SyntheticPod {
  readonly namespace: string;
  readonly podName: string;
  readonly podUid: string;
  readonly containerName?: string;
}

/** A container as binding would have made it of the pod. */
export function syntheticContainer(pod: SyntheticPod, more: Partial<BoundContainer> = {}): BoundContainer {
  const { namespace, podName, podUid, containerName = 'main' } = pod;
  return {
    ...{ namespace, podName, podUid, containerName, containerId: `${podUid}-${containerName}` },
    ...{ slot: 1, generation: 1, policyId: 0, labels: new Map<string, string>(), image: '', cgroupId: 7n },
    ...{ cgroupPath: '/pod', mountNamespace: 1, pid: 1, listed: true, state: 'learning' },
    workload: { kind: 'Pod', name: podName, truncated: false },
    ...more,
  };
}

/** The record of the first exec of a path in a container. */
export function syntheticExec(container: BoundContainer, path: string): ExecEvent {
  return {
    ...{
      kind: 'learned',
      key: `${container.containerId} ${path}` as RecordKey,
      timeMs: Date.now(),
      container,
    },
    ...{ slot: 1, generation: 1, cgroupId: 7n, path: Buffer.from(path), mode: undefined, reason: undefined },
    ...{ origin: 'entrypoint', pid: 2, parentPid: 1, uid: 0, command: 'sh', parentCommand: 'sh' },
  };
}
