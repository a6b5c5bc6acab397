import { PROMOTE_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import { PROMOTION_FAILED_CONDITION } from '@runtime-enforcer/api/promotion';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';

/** What the promotion remembers of a proposal; rules and evidence are read when they are needed. */
export interface ProposalSummary {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number | undefined;
  readonly isDeleting: boolean;
  /** Value of the promote label. */
  readonly promote: string | undefined;
  /** The failure that its status tells now. */
  readonly failure: RecordedFailure | undefined;
}

export interface RecordedFailure {
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number | undefined;
}

/** What the promotion remembers of a policy. */
export interface PolicySummary {
  readonly namespace: string;
  readonly name: string;
  readonly promotedFrom: string | undefined;
}

export function summarizeProposal(object: KubeObject): ProposalSummary {
  const { namespace = '', name, uid = '', labels, generation, deletionTimestamp } = object.metadata;
  return {
    namespace,
    name,
    uid,
    generation: typeof generation === 'number' ? generation : undefined,
    isDeleting: deletionTimestamp !== undefined,
    promote: labels?.[PROMOTE_LABEL],
    failure: recordedFailure(object),
  };
}

export function summarizePolicy({ metadata }: KubeObject): PolicySummary {
  const { namespace = '', name, labels } = metadata;
  return { namespace, name, promotedFrom: labels?.[PROMOTED_FROM_LABEL] };
}

/** Keys, `namespace/name`, of the proposals that a policy concerns: that of its name, and that it was made from. */
export function concernedProposals({ namespace, name, promotedFrom }: PolicySummary): string[] {
  return [...new Set([name, promotedFrom ?? name])].map((proposal) => `${namespace}/${proposal}`);
}

export function recordedFailure(object: KubeObject): RecordedFailure | undefined {
  const condition = conditionsOf(object).find(({ type }) => type === PROMOTION_FAILED_CONDITION);
  if (condition?.['status'] !== 'True') return undefined;
  const { reason, message, observedGeneration } = condition;
  return {
    reason: String(reason),
    message: String(message),
    observedGeneration: typeof observedGeneration === 'number' ? observedGeneration : undefined,
  };
}

/** The conditions of an object's status, whatever else stands there. */
export function conditionsOf(object: KubeObject): readonly Record<string, unknown>[] {
  const status = isJsonObject(object['status']) ? object['status'] : {};
  const conditions: unknown = status['conditions'];
  return Array.isArray(conditions) ? conditions.filter(isJsonObject) : [];
}
