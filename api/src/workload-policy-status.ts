import { conditions, type Condition } from './condition.ts';
import { MAX_MESSAGE_CHARACTERS, MAX_STATUS_NODES, MAX_VIOLATION_RECORDS } from './limits.ts';
import { mergePositions, type MergePosition } from './merge-position.ts';
import { list, mapOf, mapped, object, oneOf, text, wholeNumber, type Check } from './schema.ts';
import { timestamp } from './timestamp.ts';
import { violationRecord, type ViolationRecord } from './violation.ts';

/** How far the nodes are with a policy, and what violated it. Absent fields have their defaults. */
export interface WorkloadPolicyStatus {
  readonly observedGeneration?: number;
  readonly phase?: PolicyPhase;
  readonly totalNodes: number;
  readonly successfulNodes: number;
  readonly failedNodes: number;
  readonly transitioningNodes: number;
  /** By node name; at most 20, the last of which may be the marker `...`. */
  readonly nodesWithIssues: ReadonlyMap<string, NodeIssue>;
  /** Sorted by node name; at most 20, the last of which may be the marker `...`. */
  readonly nodesTransitioning: readonly TransitioningNode[];
  /** Every occurrence ever reported, so also those whose record is gone. */
  readonly violationCount: number;
  readonly activeViolationCount: number;
  /** Newest first. */
  readonly violations: readonly ViolationRecord[];
  /** Newest acknowledgement first. */
  readonly acknowledgedViolations: readonly AcknowledgedViolation[];
  readonly conditions: readonly Condition[];
  /** What of each agent's journal is in the counts. */
  readonly mergedFrom: readonly MergePosition[];
}

export type PolicyPhase = 'Ready' | 'Failed' | 'Transitioning';
export type NodeCode = '' | 'Ready' | 'Missing' | 'Failed' | 'Transitioning';

export interface NodeIssue {
  readonly code: NodeCode;
  readonly message?: string;
  /** When the node entered the code. */
  readonly since?: string;
}

export interface TransitioningNode extends NodeIssue {
  readonly nodeName: string;
}

export interface AcknowledgedViolation {
  readonly violation: ViolationRecord;
  readonly reason: string;
  readonly acknowledgedAt: string;
}

export const POLICY_PHASES = ['Ready', 'Failed', 'Transitioning'] as const satisfies readonly PolicyPhase[];
export const NODE_CODES = [
  '',
  'Ready',
  'Missing',
  'Failed',
  'Transitioning',
] as const satisfies readonly NodeCode[];

const count = wholeNumber({ min: 0 });
const nodeName = text({ max: 253 });
const issue = { message: text({ max: MAX_MESSAGE_CHARACTERS }), since: timestamp };

const nodeIssue: Check<NodeIssue> = object({ code: oneOf(NODE_CODES) }, issue);
const transitioningNode: Check<TransitioningNode> = object({ nodeName, code: oneOf(NODE_CODES) }, issue);
const acknowledgedViolation: Check<AcknowledgedViolation> = object(
  {
    violation: violationRecord,
    reason: text({ max: MAX_MESSAGE_CHARACTERS }),
    acknowledgedAt: timestamp,
  },
  {},
);

export const workloadPolicyStatus: Check<WorkloadPolicyStatus> = mapped(
  object(
    {},
    {
      observedGeneration: count,
      phase: oneOf(POLICY_PHASES),
      totalNodes: count,
      successfulNodes: count,
      failedNodes: count,
      transitioningNodes: count,
      nodesWithIssues: mapOf(nodeName, nodeIssue, { max: MAX_STATUS_NODES }),
      nodesTransitioning: list(transitioningNode, { max: MAX_STATUS_NODES }),
      violationCount: count,
      activeViolationCount: count,
      violations: list(violationRecord, { max: MAX_VIOLATION_RECORDS, key: ({ id }) => String(id) }),
      acknowledgedViolations: list(acknowledgedViolation, { max: MAX_VIOLATION_RECORDS }),
      conditions,
      mergedFrom: mergePositions,
    },
  ),
  (status) => ({
    ...status,
    totalNodes: status.totalNodes ?? 0,
    successfulNodes: status.successfulNodes ?? 0,
    failedNodes: status.failedNodes ?? 0,
    transitioningNodes: status.transitioningNodes ?? 0,
    nodesWithIssues: status.nodesWithIssues ?? new Map(),
    nodesTransitioning: status.nodesTransitioning ?? [],
    violationCount: status.violationCount ?? 0,
    activeViolationCount: status.activeViolationCount ?? 0,
    violations: status.violations ?? [],
    acknowledgedViolations: status.acknowledgedViolations ?? [],
    conditions: status.conditions ?? [],
    mergedFrom: status.mergedFrom ?? [],
  }),
);
