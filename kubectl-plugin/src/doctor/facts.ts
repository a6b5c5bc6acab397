import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { WorkloadResource } from '../cluster/workloads.ts';
import type { PodProtection } from '../pod-protection.ts';
import type { Known } from './finding.ts';

/** Everything that the checks look at, as of one moment. */
export interface ClusterFacts {
  readonly nowMs: number;
  readonly customResources: Known<readonly KubeObject[]>;
  readonly webhooks: Known<readonly KubeObject[]>;
  readonly admissionPolicies: Known<readonly KubeObject[]>;
  readonly agents: Known<readonly KubeObject[]>;
  readonly controllers: Known<readonly KubeObject[]>;
  readonly nodes: Known<readonly KubeObject[]>;
  /** By the agent's pod, `namespace/name`: its metrics in Prometheus' text form. */
  readonly agentMetrics: ReadonlyMap<string, Known<string>>;
  /** TLS secrets of the product. */
  readonly secrets: Known<readonly KubeObject[]>;
  readonly policies: Known<readonly WorkloadPolicy[]>;
  /** By `namespace/name`: why a policy that is there cannot be read. */
  readonly unreadablePolicies: ReadonlyMap<string, string>;
  readonly proposals: Known<readonly KubeObject[]>;
  readonly pods: Known<readonly PodProtection[]>;
  readonly workloads: Known<readonly { readonly resource: WorkloadResource; readonly object: KubeObject }[]>;
}
