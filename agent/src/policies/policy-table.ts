import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { PolicyState } from './policy-state.ts';

export type { PolicyState } from './policy-state.ts';

/** The policies and their lists in the kernel. Names are `namespace/name`. */
export interface PolicyTable {
  /**
   * Loads a policy, or what changed of it: new lists first, then one store per container makes list and mode
   * effective, then the old lists go. Never rejects: the state says what came of it. Calls for one policy take
   * effect in their order; calls for different ones do not wait for each other.
   * Call {@link ContainerBinder.policyChanged} afterwards.
   */
  apply(policy: WorkloadPolicy): Promise<PolicyState>;
  /**
   * Forgets a policy. Containers in use keep their last list until they end: then it is `retained`. An unknown
   * name is ignored. Call {@link ContainerBinder.policyChanged} afterwards.
   */
  remove(namespacedName: string): Promise<void>;
  state(namespacedName: string): PolicyState | undefined;
  states(): ReadonlyMap<string, PolicyState>;
}
