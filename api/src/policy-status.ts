import { acknowledge, type AcknowledgementRequest } from './acknowledgement.ts';
import { setCondition, type Condition } from './condition.ts';
import { nodeStatus, type NamedVerdict, type NodeStatus } from './node-status.ts';
import { statusMessage } from './status-message.ts';
import type { ViolationRecord } from './violation.ts';
import { boundedRecords, isAllowedNow, mergeJournals, type JournalBatch } from './violation-status.ts';
import type { WorkloadPolicySpec } from './workload-policy.ts';
import type { AcknowledgedViolation, WorkloadPolicyStatus } from './workload-policy-status.ts';

/** What a policy without a status has. */
export const NO_STATUS: WorkloadPolicyStatus = {
  totalNodes: 0,
  successfulNodes: 0,
  failedNodes: 0,
  transitioningNodes: 0,
  nodesWithIssues: new Map(),
  nodesTransitioning: [],
  violationCount: 0,
  activeViolationCount: 0,
  violations: [],
  acknowledgedViolations: [],
  conditions: [],
  mergedFrom: [],
};

/** Everything that a policy's status is made of. */
export interface StatusInput {
  readonly spec: WorkloadPolicySpec;
  readonly generation: number | undefined;
  readonly before: WorkloadPolicyStatus;
  readonly verdicts: readonly NamedVerdict[];
  /** Nodes that are ready and have no verdict of their own. */
  readonly readyNodes?: number;
  /** Nodes on which enforcement is weaker than it should be, and why. */
  readonly weaknesses: ReadonlyMap<string, string>;
  readonly batches: readonly JournalBatch[];
  readonly requests: readonly AcknowledgementRequest[];
  /** RFC 3339 */
  readonly now: string;
}

/** A status, and what of it is news. */
export interface StatusOutcome {
  readonly status: WorkloadPolicyStatus;
  /** Records that there were none of, and that are neither allowed nor acknowledged by now. */
  readonly added: readonly ViolationRecord[];
  readonly acknowledged: readonly AcknowledgedViolation[];
  readonly unknownRequests: readonly AcknowledgementRequest[];
}

/** The status that a policy should have: nodes, violations merged, what is allowed by now cleared, acknowledgements. */
export function policyStatus(input: StatusInput): StatusOutcome {
  const { spec, generation, before, requests, now } = input;
  const nodes = nodeStatus(input.verdicts, before, now, input.readyNodes);
  const merged = mergeJournals(before, input.batches);
  const active = merged.violations.filter((record) => !isAllowedNow(record, spec));
  const acknowledged = acknowledge({ ...before, violations: active }, requests, now);
  const violations = boundedRecords(acknowledged.violations);
  const remaining = new Set(violations.map(({ id }) => id));
  return {
    status: {
      ...before,
      ...nodes,
      ...(generation !== undefined && { observedGeneration: generation }),
      violations,
      violationCount: merged.violationCount,
      activeViolationCount: violations.length,
      acknowledgedViolations: acknowledged.acknowledgedViolations,
      mergedFrom: merged.mergedFrom,
      conditions: policyConditions(before.conditions, nodes, input.weaknesses, generation, now),
    },
    added: merged.added.filter(({ id }) => remaining.has(id)),
    acknowledged: acknowledged.taken,
    unknownRequests: acknowledged.unknown,
  };
}

type Said = Pick<Condition, 'status' | 'reason' | 'message'>;

/** The conditions `Ready`, `Progressing` and `Degraded`; others stay as they are. */
function policyConditions(
  before: readonly Condition[],
  nodes: NodeStatus,
  weaknesses: ReadonlyMap<string, string>,
  generation: number | undefined,
  now: string,
): readonly Condition[] {
  const said = {
    Ready: ready(nodes),
    Progressing: progressing(nodes),
    Degraded: degraded(nodes, weaknesses),
  };
  const observedGeneration = generation === undefined ? {} : { observedGeneration: generation };
  return Object.entries(said).reduce(
    (conditions, [type, each]) => setCondition(conditions, { type, ...each, ...observedGeneration }, now),
    before,
  );
}

function ready({ totalNodes, successfulNodes, failedNodes, transitioningNodes }: NodeStatus): Said {
  if (totalNodes === 0) {
    return { status: 'False', reason: 'NoNodes', message: 'no agent runs on any node' };
  }
  if (successfulNodes === totalNodes) {
    return {
      status: 'True',
      reason: 'AllNodesReady',
      message: `${nodesThat(totalNodes, 'enforces', 'enforce')} the policy`,
    };
  }
  const reason = failedNodes > 0 ? 'NodesFailed' : 'NodesTransitioning';
  const message =
    `${successfulNodes} of ${ofNodes(totalNodes)} enforce the policy; ` +
    `${failedNodes} have issues and ${transitioningNodes} are changing: see nodesWithIssues and nodesTransitioning`;
  return { status: 'False', reason, message };
}

function progressing({ totalNodes, transitioningNodes }: NodeStatus): Said {
  if (totalNodes === 0) return { status: 'True', reason: 'NoNodes', message: 'waiting for an agent' };
  return transitioningNodes > 0
    ? {
        status: 'True',
        reason: 'NodesTransitioning',
        message: `${nodesThat(transitioningNodes, 'is', 'are')} changing`,
      }
    : { status: 'False', reason: 'Settled', message: 'no node is changing' };
}

function degraded({ failedNodes }: NodeStatus, weaknesses: ReadonlyMap<string, string>): Said {
  const [first] = weaknesses;
  if (failedNodes > 0) {
    const message = `${nodesThat(failedNodes, 'does', 'do')} not enforce the policy: see nodesWithIssues`;
    return { status: 'True', reason: 'NodesFailed', message };
  }
  if (first === undefined) return { status: 'False', reason: 'AsExpected', message: 'no node has issues' };
  const [nodeName, why] = first;
  const message = statusMessage(
    `${nodesThat(weaknesses.size, 'enforces less than it', 'enforce less than they')} should: ${nodeName}: ${why}`,
  );
  return { status: 'True', reason: 'NodesWeakened', message };
}

function ofNodes(count: number): string {
  return count === 1 ? '1 node' : `${count} nodes`;
}

function nodesThat(count: number, one: string, several: string): string {
  return `${ofNodes(count)} ${count === 1 ? one : several}`;
}
