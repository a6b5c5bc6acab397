import { isDeepStrictEqual } from 'node:util';
import {
  type NamedVerdict,
  type NodeVerdict,
  nodeVerdict,
  type PolicyFacts,
} from '@runtime-enforcer/api/node-status';
import { policyStatus, type StatusInput, type StatusOutcome } from '@runtime-enforcer/api/policy-status';
import { workloadPolicyStatusObject } from '@runtime-enforcer/api/resource-object';
import type { WorkloadPolicyStatus } from '@runtime-enforcer/api/workload-policy-status';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isConflict, isNotFound } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { objectPath } from '@runtime-enforcer/kube/resource-path';
import type { ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import type { AgentFleet } from './agent-fleet.ts';
import { type BelievedBatch, believedBatches } from './believed-entries.ts';
import { type KnownPolicy, knownPolicy, statusOf } from './known-policy.ts';
import type { PodPlaces } from './pod-places.ts';
import type { SourceQueue } from './unstored-entries.ts';
import { journalEntry, violationBelief } from './violation-belief.ts';

const IN_ORDER = { attached: true, override: 'none' };
const NO_AGENT_MESSAGE = 'no agent runs on the node, and pods of the policy do';

export interface PolicyStepContext {
  /** Writes only while this process leads. */
  readonly client: ApiClient;
  readonly fleet: AgentFleet;
  readonly pods: PodPlaces;
  /** See `KnownUntil`. */
  readonly knownUntilMs: number;
}

/** What a look at a policy came to. */
export interface PolicyStepResult {
  readonly isWritten: boolean;
  readonly object: KubeObject;
  readonly before: WorkloadPolicyStatus;
  readonly outcome: StatusOutcome;
  /** Everything in here is stored, or is refused, by now. */
  readonly batches: readonly BelievedBatch<ReportedViolation>[];
  /** Of the believed entries. */
  readonly occurrences: number;
}

/**
 * Makes the status of a policy what it should be; writes only if it is not.
 *
 * @param isNew nodes may not have heard of the policy yet
 * @returns undefined if the policy is gone
 * @throws ApiError, ConnectionError, ContendedError: nothing may be taken for stored then
 */
export async function policyStep(
  { client, fleet, pods, knownUntilMs }: PolicyStepContext,
  key: string,
  policy: KnownPolicy,
  queues: readonly SourceQueue<ReportedViolation>[],
  isNew: boolean,
  signal: AbortSignal,
): Promise<PolicyStepResult | undefined> {
  const { namespace, name } = policy.object.metadata;
  const now = new Date().toISOString();
  const batches = believe(key, policy, queues, { pods, knownUntilMs });
  const journals = batches.map((batch) => ({
    ...batch,
    entries: batch.entries.map((entry) => journalEntry(entry, now)),
  }));
  let computed: Pick<PolicyStepResult, 'before' | 'outcome'> | undefined;
  let isWritten = false;
  let object: KubeObject;
  try {
    object = await optimisticUpdate({
      client,
      reference: {
        resource: WORKLOAD_POLICIES,
        name,
        subresource: 'status',
        ...(namespace !== undefined && { namespace }),
      },
      known: policy.object,
      signal,
      change: (current) => {
        computed = undefined;
        if (current.metadata.uid !== policy.uid) return undefined;
        const latest = current === policy.object ? policy : knownPolicy(current);
        const before = statusOf(current);
        const outcome = policyStatus({
          spec: latest.spec,
          generation: latest.generation,
          before,
          ...nodesOf({ fleet, pods }, key, latest, isNew),
          batches: journals,
          requests: latest.requests,
          now,
        });
        computed = { before, outcome };
        const status = workloadPolicyStatusObject(outcome.status);
        isWritten =
          current['status'] === undefined || !isDeepStrictEqual(status, workloadPolicyStatusObject(before));
        // Of what is written to the status, the API server takes nothing else.
        return isWritten ? { ...current, spec: undefined, status } : undefined;
      },
    });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  if (computed === undefined) return undefined;
  const { before, outcome } = computed;
  const occurrences = outcome.status.violationCount - before.violationCount;
  return { isWritten, object, before, outcome, batches, occurrences };
}

/**
 * Removes the annotations that asked for acknowledgements, after the status has them.
 * @throws ApiError, ConnectionError
 */
export async function removeRequests(
  client: ApiClient,
  policy: KnownPolicy,
  signal: AbortSignal,
): Promise<void> {
  if (policy.requests.length === 0) return;
  const { namespace, name } = policy.object.metadata;
  const annotations = Object.fromEntries(policy.requests.map(({ annotation }) => [annotation, null]));
  try {
    await client.request({
      method: 'PATCH',
      path: objectPath({ resource: WORKLOAD_POLICIES, name, ...(namespace !== undefined && { namespace }) }),
      patchType: 'application/merge-patch+json',
      body: { metadata: { uid: policy.uid, annotations } },
      signal,
    });
  } catch (error) {
    // Another policy has the name by now.
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

function believe(
  key: string,
  { object, createdAt }: KnownPolicy,
  queues: readonly SourceQueue<ReportedViolation>[],
  places: Pick<PolicyStepContext, 'pods' | 'knownUntilMs'>,
): BelievedBatch<ReportedViolation>[] {
  if (queues.length === 0) return [];
  const knownNodes = new Set(statusOf(object).mergedFrom.map(({ nodeName }) => nodeName));
  const context = { ...places, policy: key, policyCreatedAt: createdAt, knownNodes };
  return believedBatches(queues, (entry, source) => violationBelief(entry, source, context));
}

function nodesOf(
  { fleet, pods }: Pick<PolicyStepContext, 'fleet' | 'pods'>,
  key: string,
  { spec, digest }: KnownPolicy,
  isNew: boolean,
): Pick<StatusInput, 'verdicts' | 'readyNodes' | 'weaknesses'> {
  const wanted = { mode: spec.mode, digest, isNew };
  const verdicts: NamedVerdict[] = [];
  const weaknesses = new Map<string, string>();
  const { byName, inOrder, others } = fleet.nodes();
  const reports = fleet.reportsOf(key);
  const add = (nodeName: string, { code, message }: NodeVerdict): void =>
    void verdicts.push({ nodeName, code, message });

  let readyNodes = 0;
  /** What a node is ready with: the same object is found at nearly all. */
  let readyWith: PolicyFacts | undefined;
  for (const { nodeName, pod } of inOrder) {
    const policy = reports.get(pod);
    if (policy !== undefined && policy === readyWith) {
      readyNodes++;
      continue;
    }
    const verdict = nodeVerdict(wanted, { kind: 'reported', node: IN_ORDER, ...(policy && { policy }) });
    if (verdict.code !== 'Ready') add(nodeName, verdict);
    else {
      readyNodes++;
      readyWith = policy;
    }
  }
  for (const { nodeName, agent } of others) {
    const node = agent?.isReporting() === true ? agent.node : undefined;
    const policy = agent && reports.get(agent.pod);
    const verdict = nodeVerdict(
      wanted,
      node === undefined
        ? { kind: 'silent', why: fleet.silence(agent) }
        : { kind: 'reported', node, ...(policy && { policy }) },
    );
    add(nodeName, verdict);
    const degraded = node?.degraded ?? '';
    if (degraded !== '' && verdict.code === 'Ready') weaknesses.set(nodeName, degraded);
  }
  for (const nodeName of pods.nodesOf(key)) {
    if (!byName.has(nodeName)) add(nodeName, { code: 'Missing', message: NO_AGENT_MESSAGE });
  }
  return { verdicts, readyNodes, weaknesses };
}
