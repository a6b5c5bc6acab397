import type { ReportedBinding, ReportedContainer, ReportedPod } from '@runtime-enforcer/rpc/reported';
import type { ClusterPod } from './cluster-pod.ts';

/** For tests: a pod with one running container, as the API server has it. */
export function clusterPod(changed: Partial<ClusterPod> = {}): ClusterPod {
  return {
    ...{ id: 'uid-1', name: 'web-1', namespace: 'shop', nodeName: 'node-1', phase: 'Running' },
    labels: new Map([
      ['app', 'web'],
      ['runtimeenforcer.kubewarden.io/policy', 'web'],
    ]),
    containers: [{ id: 'c1', name: 'app', isRunning: true }],
    ...{ address: '10.0.0.1', isDeleting: false, createdAt: 0 },
    ...changed,
  };
}

/** For tests: the same pod as its agent knows it. */
export function reportedPod(changed: Partial<ReportedPod> = {}): ReportedPod {
  return {
    ...{ uid: 'uid-1', name: 'web-1', namespace: 'shop', workloadKind: 'Pod', workloadName: 'web-1' },
    labels: clusterPod().labels,
    containers: [reportedContainer()],
    omitted: 0,
    ...changed,
  };
}

export function reportedContainer(changed: Partial<ReportedContainer> = {}): ReportedContainer {
  return {
    ...{ id: 'c1', name: 'app', cgroupId: 7n, presentCgroupId: 7n, state: 'enforced', listed: true },
    ...{ policyName: 'shop/web', image: 'shop/web:1', pid: 100 },
    ...{ slot: 3, generation: 2, mountNamespace: 4_026_532_000, policyId: 5 },
    ...changed,
  };
}

/** For tests: what the kernel holds of that container. */
export function reportedBinding(changed: Partial<ReportedBinding> = {}): ReportedBinding {
  return {
    ...{ cgroupId: 7n, slot: 3, indexed: true, slotCgroupId: 7n, generation: 2 },
    ...{ mountNamespace: 4_026_532_000, policyId: 5, learning: false, mode: 'protect' },
    namespaceIndexed: true,
    ...changed,
  };
}
