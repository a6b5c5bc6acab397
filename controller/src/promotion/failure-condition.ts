import { type Condition, setCondition } from '@runtime-enforcer/api/condition';
import { PROMOTION_FAILED_CONDITION, type PromotionFailure } from '@runtime-enforcer/api/promotion';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { conditionsOf, type ProposalSummary, recordedFailure } from './proposal-summary.ts';

/**
 * Makes a proposal's status say that its promotion fails, or no longer say so. Nothing is written where it says the right
 * thing already, nor to another proposal that has taken the name.
 *
 * @throws ApiError, ConnectionError, ContendedError
 */
export async function writeFailure(
  client: ApiClient,
  { namespace, name, uid }: ProposalSummary,
  failure: PromotionFailure | undefined,
  signal: AbortSignal,
): Promise<void> {
  try {
    await optimisticUpdate({
      client,
      reference: { resource: WORKLOAD_POLICY_PROPOSALS, namespace, name, subresource: 'status' },
      change: (current) => (current.metadata.uid === uid ? withFailure(current, failure) : undefined),
      signal,
    });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function withFailure(current: KubeObject, failure: PromotionFailure | undefined): KubeObject | undefined {
  const status = isJsonObject(current['status']) ? current['status'] : {};
  const conditions = conditionsOf(current) as readonly Record<string, unknown>[] &
    readonly Partial<Condition>[];
  if (failure === undefined) {
    const others = conditions.filter(({ type }) => type !== PROMOTION_FAILED_CONDITION);
    if (others.length === conditions.length) return undefined;
    return { ...current, status: { ...status, conditions: others } };
  }
  const known = recordedFailure(current);
  const { generation } = current.metadata;
  const observedGeneration = typeof generation === 'number' ? generation : undefined;
  if (
    known?.reason === failure.reason &&
    known.message === failure.message &&
    known.observedGeneration === observedGeneration
  ) {
    return undefined;
  }
  const condition = {
    type: PROMOTION_FAILED_CONDITION,
    status: 'True',
    ...failure,
    ...(observedGeneration !== undefined && { observedGeneration }),
  } as const;
  const now = new Date().toISOString();
  return {
    ...current,
    status: { ...status, conditions: setCondition(conditions as readonly Condition[], condition, now) },
  };
}
