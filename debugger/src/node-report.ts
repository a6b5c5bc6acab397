import type { AgentCache } from './agent-cache.ts';
import type { ClusterPod } from './cluster-pod.ts';
import { compareBindings } from './compare-bindings.ts';
import { comparePods, isCompared } from './compare-pods.ts';
import { type Difference, differenceKey } from './difference.ts';

export type NodeState = 'aligned' | 'differences' | 'no-agent-cache' | 'unexpected-agent-cache';

/** What became of comparing one node. */
export interface NodeReport {
  readonly node: string;
  readonly state: NodeState;
  /** Why there is no cache. */
  readonly reason?: string;
  readonly differences: readonly Difference[];
  readonly remarks: readonly Difference[];
  /** Kept where something is wrong. */
  readonly cache?: AgentCache;
}

/** What an agent answered, or why there is no answer. */
export type AgentAnswer = { readonly cache: AgentCache } | { readonly reason: string };

/** The comparison of all nodes of the cluster at one time. */
export interface ClusterReport {
  readonly time: string;
  readonly nodes: number;
  readonly agentCaches: number;
  /** By the nodes' names. */
  readonly reports: readonly NodeReport[];
}

/**
 * Compares one node.
 *
 * @param pods of the node as the API server has them
 * @param answer undefined: no agent runs there
 */
export function compareNode(
  node: string,
  pods: readonly ClusterPod[],
  answer: AgentAnswer | undefined,
): NodeReport {
  if (answer === undefined || 'reason' in answer) {
    const { reason = 'no agent runs on the node' } = answer ?? {};
    return { node, state: 'no-agent-cache', reason, differences: [], remarks: [] };
  }
  const { cache } = answer;
  const compared = comparePods(pods, cache.pods);
  const { remarks } = compared;
  const running = pods
    .flatMap(({ containers }) => containers)
    .filter(({ isRunning }) => isRunning)
    .map(({ id }) => id);
  const inKernel: readonly Difference[] =
    typeof cache.bindings === 'string'
      ? [{ kind: 'kernel-untold', agent: cache.bindings }]
      : compareBindings(cache.pods, cache.bindings, new Set(running));
  const differences = [...compared.differences, ...inKernel];
  if (!pods.some(isCompared) && cache.pods.length > 0)
    return { node, state: 'unexpected-agent-cache', differences, remarks, cache };
  return differences.length === 0
    ? { node, state: 'aligned', differences, remarks }
    : { node, state: 'differences', differences, remarks, cache };
}

/** Whether every node's cache is what it should be. */
export function isAligned({ reports }: ClusterReport): boolean {
  return reports.every(({ state }) => state === 'aligned');
}

/**
 * The later of two looks, without the differences that the earlier one did not find: API server and agents are asked
 * one after the other, so that what starts or ends in between differs for a moment. Where the earlier look saw no cache
 * everything stays.
 */
export function persistentReport(earlier: ClusterReport, later: ClusterReport): ClusterReport {
  const before = new Map(earlier.reports.map((report) => [report.node, report]));
  return {
    ...later,
    reports: later.reports.map((report) => {
      const { state, node } = report;
      const known = before.get(node);
      if (state !== 'differences' || known === undefined || known.state === 'no-agent-cache') return report;
      const keys = new Set(known.differences.map(differenceKey));
      const differences = report.differences.filter((difference) => keys.has(differenceKey(difference)));
      if (differences.length > 0) return { ...report, differences };
      return { node, state: 'aligned', differences, remarks: report.remarks };
    }),
  };
}
