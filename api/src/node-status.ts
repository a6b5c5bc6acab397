import { MAX_STATUS_NODES } from './limits.ts';
import { statusMessage } from './status-message.ts';
import type { PolicyMode } from './workload-policy.ts';
import type {
  NodeCode,
  NodeIssue,
  PolicyPhase,
  TransitioningNode,
  WorkloadPolicyStatus,
} from './workload-policy-status.ts';

/** Stands for all nodes that there is no room for. */
const MORE_NODES = '...';
const MORE_ISSUES_MESSAGE = 'Maximum number of nodes with issues reached';

/** What is known of one policy on one node. */
export type NodeFacts =
  /** The node's agent does not answer, or there is none. */
  | { readonly kind: 'silent'; readonly why: string }
  /** The agent answers; `policy` is absent where its listing is whole and does not hold it. */
  | { readonly kind: 'reported'; readonly node: NodeCondition; readonly policy?: PolicyFacts };

export interface NodeCondition {
  /** Whether execs are checked at all. */
  readonly attached: boolean;
  /** `none`, `monitor` or `off`. */
  readonly override: string;
}

export interface PolicyFacts {
  readonly state: 'ready' | 'error' | 'retained' | 'unknown';
  readonly mode: PolicyMode | 'unknown';
  readonly message: string;
  /** Of the lists in the kernel; empty where the agent does not tell. */
  readonly digest: string;
}

/** What a node should hold. */
export interface WantedPolicy {
  readonly mode: PolicyMode;
  readonly digest: string;
  /** Nodes may not have heard of it yet. */
  readonly isNew: boolean;
}

export interface NodeVerdict {
  readonly code: Exclude<NodeCode, ''>;
  readonly message: string;
}

const READY: NodeVerdict = { code: 'Ready', message: '' };

/** How far one node is with one policy. */
export function nodeVerdict(wanted: WantedPolicy, facts: NodeFacts): NodeVerdict {
  if (facts.kind === 'silent') return { code: 'Missing', message: statusMessage(facts.why) };
  const { node, policy } = facts;
  if (!node.attached || node.override === 'off') {
    const why = node.attached
      ? 'it was switched off by hand there'
      : 'the agent is not attached to the kernel';
    return { code: 'Failed', message: `nothing is checked on the node: ${why}` };
  }
  if (policy === undefined) {
    const code = wanted.isNew ? 'Transitioning' : 'Missing';
    return { code, message: 'the policy is not loaded on the node' };
  }
  switch (policy.state) {
    case 'error':
      return { code: 'Failed', message: statusMessage(policy.message || 'policy is in error state') };
    case 'retained':
      return { code: 'Transitioning', message: 'the node has an earlier policy of this name' };
    case 'unknown':
      return { code: 'Missing', message: 'the agent reports a state that is not known here: is it newer?' };
    case 'ready':
      return readyVerdict(wanted, policy, node);
  }
}

function readyVerdict(wanted: WantedPolicy, policy: PolicyFacts, { override }: NodeCondition): NodeVerdict {
  if (override === 'monitor' && wanted.mode === 'protect') {
    return { code: 'Failed', message: 'nothing is denied on the node: it was set to monitor by hand there' };
  }
  if (policy.mode !== wanted.mode) {
    return { code: 'Transitioning', message: `the node has the mode ${policy.mode}` };
  }
  if (policy.digest !== '' && policy.digest !== wanted.digest) {
    return { code: 'Transitioning', message: 'the node has other rules' };
  }
  return READY;
}

export interface NamedVerdict extends NodeVerdict {
  readonly nodeName: string;
}

/** The part of a policy's status that tells of nodes. */
export type NodeStatus = Pick<
  WorkloadPolicyStatus,
  | 'totalNodes'
  | 'successfulNodes'
  | 'failedNodes'
  | 'transitioningNodes'
  | 'nodesWithIssues'
  | 'nodesTransitioning'
> & { readonly phase: PolicyPhase };

/**
 * Counts the nodes, names those that are not ready as far as there is room, by name, and keeps since when each has its code.
 * @param verdicts one per node
 * @param now RFC 3339
 * @param readyNodes further nodes, all of them ready
 */
export function nodeStatus(
  verdicts: readonly NamedVerdict[],
  before: Pick<WorkloadPolicyStatus, 'nodesWithIssues' | 'nodesTransitioning'> | undefined,
  now: string,
  readyNodes = 0,
): NodeStatus {
  const totalNodes = verdicts.length + readyNodes;
  const transitioning = verdicts.filter(({ code }) => code === 'Transitioning');
  const failed = verdicts.filter(({ code }) => code === 'Failed' || code === 'Missing');
  const successfulNodes = totalNodes - transitioning.length - failed.length;
  const known = new Map<string, NodeIssue>(before?.nodesWithIssues);
  for (const { nodeName, ...issue } of before?.nodesTransitioning ?? []) known.set(nodeName, issue);
  const issueOf = ({ nodeName, code, message }: NamedVerdict): NodeIssue => {
    const last = known.get(nodeName);
    return { code, message, since: (last?.code === code ? last.since : undefined) ?? now };
  };
  return {
    totalNodes,
    successfulNodes,
    failedNodes: failed.length,
    transitioningNodes: transitioning.length,
    nodesWithIssues: new Map([
      ...shown(failed).map((each): [string, NodeIssue] => [each.nodeName, issueOf(each)]),
      ...(failed.length < MAX_STATUS_NODES ? [] : [[MORE_NODES, moreIssues(known, now)] as const]),
    ]),
    nodesTransitioning: [
      ...shown(transitioning).map((each): TransitioningNode => ({
        nodeName: each.nodeName,
        ...issueOf(each),
      })),
      ...(transitioning.length < MAX_STATUS_NODES
        ? []
        : [{ nodeName: MORE_NODES, code: 'Transitioning' } as const]),
    ],
    phase: phaseOf(totalNodes, failed.length, transitioning.length),
  };
}

function moreIssues(known: ReadonlyMap<string, NodeIssue>, now: string): NodeIssue {
  const since = known.get(MORE_NODES)?.since ?? now;
  return { code: 'Failed', message: MORE_ISSUES_MESSAGE, since };
}

function shown(verdicts: readonly NamedVerdict[]): readonly NamedVerdict[] {
  return verdicts
    .toSorted((one, other) => (one.nodeName < other.nodeName ? -1 : 1))
    .slice(0, MAX_STATUS_NODES - 1);
}

/** Where there is no node, nothing is ready yet. */
function phaseOf(total: number, failed: number, transitioning: number): PolicyPhase {
  if (failed > 0) return 'Failed';
  return transitioning > 0 || total === 0 ? 'Transitioning' : 'Ready';
}
