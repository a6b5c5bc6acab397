import type { LearnedPath } from '@runtime-enforcer/api/learned-paths';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isAlreadyExists, isNotFound } from '@runtime-enforcer/kube/api-error';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { collectionPath, objectPath } from '@runtime-enforcer/kube/resource-path';
import type { OwnedWorkload } from './owner-chain.ts';
import { newProposal, type ProposalUpdate, updatedProposal } from './proposal-object.ts';

/** One name for all agents: `managedFields` has an entry for each name that ever wrote. */
const FIELD_MANAGER = 'runtime-enforcer-agent';

/** A proposal, and the paths that it is to list. They may grow while it is being written. */
export interface WantedProposal {
  readonly name: string;
  readonly workload: OwnedWorkload;
  readonly waiting: ReadonlyMap<string, LearnedPath>;
}

/**
 * Brings paths into a proposal, and makes it if there is none.
 *
 * @returns `marked`: it is marked for promotion, or there is its policy. `absent`: there is none and nothing to list
 * @throws ApiError, ConnectionError, ContendedError, UnusableProposalError, EndingProposalError
 */
export async function writeProposal(
  client: ApiClient,
  proposal: WantedProposal,
  signal: AbortSignal,
): Promise<ProposalUpdate | 'marked' | 'absent'> {
  for (;;) {
    try {
      return await change(client, proposal, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    if (proposal.waiting.size === 0) return 'absent';
    // The policy comes before its proposal goes: where no watch has told either, the API itself does.
    if (await hasPolicy(client, proposal, signal)) return 'marked';
    try {
      return await create(client, proposal, signal);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}

async function change(
  client: ApiClient,
  { name, workload, waiting }: WantedProposal,
  signal: AbortSignal,
): Promise<ProposalUpdate | 'marked'> {
  let result: ProposalUpdate | 'marked' = 'marked';
  await optimisticUpdate({
    ...{ client, signal, fieldManager: FIELD_MANAGER },
    reference: { resource: WORKLOAD_POLICY_PROPOSALS, namespace: workload.namespace, name },
    change(current) {
      result = updatedProposal(current, workload, [...waiting.values()]);
      return result === 'marked' ? undefined : result.object;
    },
  });
  return result;
}

async function create(
  client: ApiClient,
  { name, workload, waiting }: WantedProposal,
  signal: AbortSignal,
): Promise<ProposalUpdate> {
  const update = newProposal(name, workload, [...waiting.values()]);
  const path = collectionPath(WORKLOAD_POLICY_PROPOSALS, workload.namespace);
  const query = { fieldManager: FIELD_MANAGER };
  await client.request({ method: 'POST', path, query, body: update.object, signal });
  return update;
}

async function hasPolicy(
  client: ApiClient,
  { name, workload: { namespace } }: WantedProposal,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.request({ path: objectPath({ resource: WORKLOAD_POLICIES, namespace, name }), signal });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
