import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';

/** The name of a policy in the cluster: `namespace/name`. */
export function policyKey({ metadata }: Pick<WorkloadPolicy, 'metadata'>): string {
  return `${metadata.namespace}/${metadata.name}`;
}
