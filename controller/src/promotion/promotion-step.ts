import { PROMOTE_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import {
  decidePromotion,
  policyExists,
  policyRefused,
  type PromotionFailure,
  requestedMode,
} from '@runtime-enforcer/api/promotion';
import { workloadPolicyObject } from '@runtime-enforcer/api/resource-object';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError, isAlreadyExists, isNotFound } from '@runtime-enforcer/kube/api-error';
import { isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { writeFailure } from './failure-condition.ts';
import type { PolicySummary, ProposalSummary } from './proposal-summary.ts';

/** How long after a refusal, whose cause nobody tells us of, the same policy is offered again. */
const REFUSED_RETRY_MS = 5 * 60_000;
/** Answers that say no to this policy, and would say it again. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422]);

export type PromotionOutcome = 'promoted' | 'failed' | 'leftoverRemoved' | 'nothing';

export interface PromotionContext {
  readonly client: ApiClient;
  /** The policy that is known under a key, `namespace/name`. */
  readonly policy: (key: string) => PolicySummary | undefined;
  /** The policies that are known to be made from the proposal of a key. */
  readonly madeFrom: (key: string) => readonly PolicySummary[];
}

/** What became of a proposal, for Events, log and metrics. */
export type PromotionResult =
  | { readonly outcome: 'nothing' }
  | { readonly outcome: 'promoted'; readonly policy: KubeObject }
  | { readonly outcome: 'leftoverRemoved'; readonly policyName: string; readonly wasAsked: boolean }
  | FailedPromotion;

export interface FailedPromotion {
  readonly outcome: 'failed';
  readonly failure: PromotionFailure;
  /** Whether the proposal's status did not tell it yet. */
  readonly isNew: boolean;
  /** After how long to try again; without it, when something has changed. */
  readonly retryMs?: number;
}

const NOTHING: PromotionResult = { outcome: 'nothing' };

/**
 * Brings one proposal as far as it can get. Each write can be the last one before the process ends: whoever repeats the step
 * goes on where it stopped, because the policy itself, by its label, tells that it has been made.
 *
 * @throws ApiError and ConnectionError for what another try may repair
 */
export async function promotionStep(
  context: PromotionContext,
  proposal: ProposalSummary,
  signal: AbortSignal,
): Promise<PromotionResult> {
  if (proposal.isDeleting) return NOTHING;
  const { client } = context;
  const { promote } = proposal;
  const key = `${proposal.namespace}/${proposal.name}`;
  for (const { name } of context.madeFrom(key)) {
    // What is remembered may be gone meanwhile, and with it the right to remove anything.
    if (await isMadeFrom(client, proposal, name, signal)) return await removeLeftover(name);
  }
  if (promote === undefined) {
    if (proposal.failure !== undefined) await writeFailure(client, proposal, undefined, signal);
    return NOTHING;
  }
  const mode = requestedMode(promote);
  if (typeof mode !== 'string') return await fail(mode);
  const namesake = context.policy(key);
  if (namesake !== undefined && namesake.promotedFrom !== proposal.name) {
    return await fail(policyExists(proposal.name));
  }
  if (isKnownFailure(proposal)) return NOTHING;
  return await create(promote);

  async function create(asked: string): Promise<PromotionResult> {
    const current = await read(client, WORKLOAD_POLICY_PROPOSALS, proposal, signal);
    // Whatever has changed since is told, and then looked at again.
    if (current?.metadata.uid !== proposal.uid || current.metadata.labels?.[PROMOTE_LABEL] !== asked) {
      return NOTHING;
    }
    const decision = decidePromotion(current, asked);
    if (decision.action === 'fail') return await fail(decision.failure);
    let policy: KubeObject;
    try {
      policy = await createPolicy(decision.policy);
    } catch (error) {
      return await notCreated(error);
    }
    await remove(client, proposal, signal);
    return { outcome: 'promoted', policy };
  }

  async function notCreated(error: unknown): Promise<PromotionResult> {
    if (isAlreadyExists(error)) {
      const isOurs = await isMadeFrom(client, proposal, proposal.name, signal);
      return isOurs ? await removeLeftover(proposal.name) : await fail(policyExists(proposal.name));
    }
    if (!(error instanceof ApiError) || !REFUSALS.has(error.code)) throw error;
    // Nothing in a namespace that ends needs a policy any more.
    if (error.causes.includes('NamespaceTerminating')) return NOTHING;
    return { ...(await fail(policyRefused(error.said))), retryMs: REFUSED_RETRY_MS };
  }

  async function createPolicy(policy: WorkloadPolicy): Promise<KubeObject> {
    const path = collectionPath(WORKLOAD_POLICIES, proposal.namespace);
    const created = await client.request({
      method: 'POST',
      path,
      body: workloadPolicyObject(policy),
      signal,
    });
    if (!isKubeObject(created)) throw new Error(`POST ${path}: the answer is no object with a name`);
    return created;
  }

  async function fail(failure: PromotionFailure): Promise<FailedPromotion> {
    const { failure: told, generation } = proposal;
    const isNew =
      told?.reason !== failure.reason ||
      told.message !== failure.message ||
      told.observedGeneration !== generation;
    if (isNew) await writeFailure(client, proposal, failure, signal);
    return { outcome: 'failed', failure, isNew };
  }

  async function removeLeftover(policyName: string): Promise<PromotionResult> {
    await remove(client, proposal, signal);
    return { outcome: 'leftoverRemoved', policyName, wasAsked: promote !== undefined };
  }
}

/** Failures that last as long as the proposal is the same, and that its status tells. */
function isKnownFailure({ failure, generation }: ProposalSummary): boolean {
  if (failure?.reason === 'NameTooLong') return true;
  return failure?.reason === 'InvalidProposal' && failure.observedGeneration === generation;
}

async function isMadeFrom(
  client: ApiClient,
  { namespace, name }: ProposalSummary,
  policyName: string,
  signal: AbortSignal,
): Promise<boolean> {
  const policy = await read(client, WORKLOAD_POLICIES, { namespace, name: policyName }, signal);
  return policy?.metadata.labels?.[PROMOTED_FROM_LABEL] === name;
}

async function read(
  client: ApiClient,
  resource: Resource,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const path = objectPath({ resource, namespace, name });
  try {
    const object = await client.request({ path, signal });
    return isKubeObject(object) ? object : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Removes this proposal, and none that has taken its name since. */
async function remove(
  client: ApiClient,
  { namespace, name, uid }: ProposalSummary,
  signal: AbortSignal,
): Promise<void> {
  const path = objectPath({ resource: WORKLOAD_POLICY_PROPOSALS, namespace, name });
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
  try {
    await client.request({ method: 'DELETE', path, body, signal });
  } catch (error) {
    const isAnother = error instanceof ApiError && error.code === 409;
    if (!isNotFound(error) && !isAnother) throw error;
  }
}
