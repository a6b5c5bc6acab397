import { isDeepStrictEqual } from 'node:util';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { type ObservationEntry, proposalStatus } from '@runtime-enforcer/api/observation-status';
import {
  parseWorkloadPolicyProposal,
  type WorkloadPolicyProposal,
} from '@runtime-enforcer/api/workload-policy-proposal';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { type KubeObject, withoutManagedFields } from '@runtime-enforcer/kube/kube-object';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { type Belief, type BelievedBatch, believedBatches } from './believed-entries.ts';
import type { PodPlaces } from './pod-places.ts';
import type { SourceQueue, UnstoredEntry } from './unstored-entries.ts';
import { GRACE_MS } from './violation-belief.ts';

/** A proposal as the API server holds it. */
export interface KnownProposal {
  readonly object: KubeObject;
  readonly uid: string;
}

export function knownProposal(object: KubeObject): KnownProposal {
  return { object: withoutManagedFields(object), uid: object.metadata.uid ?? '' };
}

export interface ProposalStepResult {
  readonly isWritten: boolean;
  /** Everything in here is stored, or is refused, by now. */
  readonly batches: readonly BelievedBatch<NodeObservation>[];
}

/**
 * Adds to a proposal's status what agents have observed since; writes only if something changes.
 *
 * @returns undefined if the proposal is gone
 * @throws ApiError, ConnectionError, ContendedError, and Error for a proposal that cannot be read
 */
export async function proposalStep(
  { client, pods }: { readonly client: ApiClient; readonly pods: PodPlaces },
  { object, uid }: KnownProposal,
  queues: readonly SourceQueue<NodeObservation>[],
  signal: AbortSignal,
): Promise<ProposalStepResult | undefined> {
  const { namespace, name } = object.metadata;
  const now = new Date().toISOString();
  const known = new Set(read(object).status?.mergedFrom.map(({ nodeName }) => nodeName));
  const nowMs = performance.now();
  const batches = believedBatches(queues, ({ value, readAtMs }, { nodeName }): Belief => {
    const answers = value.pods.map((pod) => pods.isOn(`${value.namespace}/${pod}`, nodeName));
    if (known.has(nodeName) || answers.includes('yes')) return 'believed';
    if (answers.length > 0 && answers.every((answer) => answer === 'no')) return 'OtherPod';
    return nowMs - readAtMs < GRACE_MS ? 'later' : 'UnknownPod';
  });
  const observed = batches.map(({ nodeName, incarnation, entries }) => ({
    nodeName,
    incarnation,
    entries: entries.map((entry) => observationEntry(entry, nodeName, pods)),
  }));
  let computed: { readonly isWritten: boolean } | undefined;
  try {
    await optimisticUpdate({
      client,
      reference: {
        resource: WORKLOAD_POLICY_PROPOSALS,
        name,
        subresource: 'status',
        ...(namespace !== undefined && { namespace }),
      },
      known: object,
      signal,
      change: (current) => {
        computed = undefined;
        if (current.metadata.uid !== uid) return undefined;
        const proposal = read(current);
        const status = proposalStatus(proposal, observed, now);
        const isWritten = !isDeepStrictEqual(status, proposal.status ?? proposalStatus(proposal, [], now));
        computed = { isWritten };
        return isWritten ? { ...current, status } : undefined;
      },
    });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  return computed && { ...computed, batches };
}

/** A node speaks for itself and its own pods only. */
function observationEntry(
  { sequence, value, previousCount }: UnstoredEntry<NodeObservation>,
  nodeName: string,
  pods: PodPlaces,
): ObservationEntry {
  const { namespace, containerName, executablePath, count, firstSeen, lastSeen, origins } = value;
  return {
    sequence,
    previousCount,
    observation: {
      ...{ containerName, executablePath, count, firstSeen, lastSeen, origins },
      nodes: [nodeName],
      pods: value.pods.filter((pod) => pods.isOn(`${namespace}/${pod}`, nodeName) !== 'no'),
    },
  };
}

function read({ apiVersion, kind, metadata, spec, status }: KubeObject): WorkloadPolicyProposal {
  const { name, namespace } = metadata;
  const parsed = parseWorkloadPolicyProposal({
    apiVersion,
    kind,
    metadata: { name, namespace },
    spec,
    status,
  });
  if (parsed.ok) return parsed.value;
  throw new Error(`the proposal ${name} cannot be read: ${JSON.stringify(parsed.errors[0])}`);
}
