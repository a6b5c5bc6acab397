import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { type LabelSelector, matchesLabels } from '@runtime-enforcer/kube/label-selector';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath, PODS } from '@runtime-enforcer/kube/resource-path';
import type { AgentClient } from '@runtime-enforcer/rpc/agent-client';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { ANSWER_MS, readAgentCache } from './agent-cache.ts';
import { type ClusterPod, clusterPodOf } from './cluster-pod.ts';
import {
  type AgentAnswer,
  type ClusterReport,
  compareNode,
  isAligned,
  type NodeReport,
  persistentReport,
} from './node-report.ts';

const AGENTS_AT_ONCE = 32;
/** Between two looks: longer than kubelet takes to tell the API server what a node's runtime has done. */
const SETTLE_MS = 3_000;

/** The pod of an agent that can be asked. */
export type AgentPod = ClusterPod & { readonly address: string };

export interface LookParts {
  readonly client: ApiClient;
  /** Where the agents are: a pod of another namespace is none, whatever its labels. */
  readonly namespace: string;
  readonly selector: LabelSelector;
  readonly connect: (pod: AgentPod) => Pick<AgentClient, 'listPods' | 'listBindings' | 'close'>;
  readonly signal: AbortSignal;
  /** Milliseconds between the two looks of a round. */
  readonly settleMs?: number;
  /** For all that one agent tells. */
  readonly answerMs?: number;
}

/**
 * Compares the caches of all agents with the cluster; where something differs once more a little later, and tells what
 * then still does.
 *
 * @throws ApiError, ConnectionError where the pods of the cluster cannot be listed
 */
export async function compareCluster(parts: LookParts): Promise<ClusterReport> {
  const { signal, settleMs = SETTLE_MS } = parts;
  const first = await look(parts);
  if (isAligned(first)) return first;
  await sleep(settleMs, undefined, { signal });
  return persistentReport(first, await look(parts));
}

async function look(parts: LookParts): Promise<ClusterReport> {
  const { client, signal, namespace, selector } = parts;
  const { objects } = await pagedList(
    client,
    { path: collectionPath(PODS), query: {}, signal },
    clusterPodOf,
  );
  const pods = objects.filter((pod) => pod !== undefined);
  const agents = new Map(
    Map.groupBy(
      pods.filter((pod) => pod.namespace === namespace && isAgent(pod, selector)),
      ({ nodeName }) => nodeName,
    ),
  );
  const byNode = Map.groupBy(pods, ({ nodeName }) => nodeName);
  const nodes = [...byNode.keys()].sort();
  const reports: NodeReport[] = [];
  let agentCaches = 0;
  await inParallel(nodes, AGENTS_AT_ONCE, async (node) => {
    const answer = await answerOf(agents.get(node) ?? [], parts);
    if (answer !== undefined && 'cache' in answer) agentCaches++;
    reports.push(compareNode(node, byNode.get(node) ?? [], answer));
  });
  reports.sort((one, other) => (one.node < other.node ? -1 : 1));
  return { time: new Date().toISOString(), nodes: nodes.length, agentCaches, reports };
}

function isAgent({ labels, phase }: ClusterPod, selector: LabelSelector): boolean {
  const hasEnded = phase === 'Succeeded' || phase === 'Failed';
  return !hasEnded && matchesLabels(selector, Object.fromEntries(labels));
}

/** While one agent takes the place of another there are two: the newer one that stays is asked first. */
async function answerOf(
  agents: readonly ClusterPod[],
  { connect, answerMs = ANSWER_MS, signal }: LookParts,
): Promise<AgentAnswer | undefined> {
  const inOrder = agents.toSorted(
    (one, other) => Number(one.isDeleting) - Number(other.isDeleting) || other.createdAt - one.createdAt,
  );
  const reasons: string[] = [];
  for (const pod of inOrder) {
    const { address, name } = pod;
    if (address === undefined) {
      reasons.push(`agent ${name} has no address yet`);
      continue;
    }
    try {
      return { cache: await readAgentCache(connect({ ...pod, address }), { answerMs, signal }) };
    } catch (error) {
      signal.throwIfAborted();
      reasons.push(describeError(error));
    }
  }
  return reasons.length === 0 ? undefined : { reason: reasons.join('; ') };
}

async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = items.values();
  await Promise.all(
    Array.from({ length: Math.min(atOnce, items.length) }, async () => {
      for (const item of waiting) await work(item);
    }),
  );
}
