import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { PolicyTable } from '@runtime-enforcer/agent/policies/policy-table';

const PROGRESS_EVERY = 1_000;

/**
 * Applies policies as an agent that starts does: all at once. Resolves with how many there were.
 *
 * @throws Error with the first policy that the kernel did not take
 */
export async function loadPolicies(
  table: Pick<PolicyTable, 'apply'>,
  policies: Iterable<WorkloadPolicy>,
  progress: (loaded: number) => void = () => undefined,
): Promise<number> {
  let loaded = 0;
  const states = Array.from(policies, async (policy) => {
    const { state, message } = await table.apply(policy);
    if (state !== 'ready') throw new Error(`policy ${policy.metadata.name} is ${state}: ${message ?? ''}`);
    if (++loaded % PROGRESS_EVERY === 0) progress(loaded);
  });
  await Promise.all(states);
  return loaded;
}
