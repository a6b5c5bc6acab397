import type { ExecOrigin } from '@runtime-enforcer/api/exec-origin';
import type { ViolationRecord } from '@runtime-enforcer/api/violation';
import type { RecordKey } from '../kernel/enforcer.ts';

/** What a line says of the container, as it was when the line was written. All texts come from tenants. */
export interface LineContainer {
  readonly namespace: string;
  readonly podName: string;
  readonly containerName: string;
  readonly containerId: string;
  readonly image: string;
  readonly workloadKind: string;
  readonly workloadName: string;
  readonly nodeName: string;
  /** Without its namespace, which is the pod's. */
  readonly policyName: string;
}

/**
 * One violation of a container and how often it has occurred. A later line of the same container, path and action
 * replaces an earlier one: counts are totals, not differences.
 */
export interface ViolationLine extends LineContainer, Omit<ViolationRecord, keyof LineContainer | 'id'> {
  readonly event: 'policy_violation';
  /** When the line was written. */
  readonly time: string;
  readonly origin: ExecOrigin;
  /** Which count of the kernel's goes on with this line; absent for what was found running. */
  readonly recordKey?: RecordKey;
  /** How much of that count is in `occurrences`: what the kernel has counted since is added to it by the next agent. */
  readonly recordCount?: number;
}

/**
 * How many violations of a container stand in no line of their own: kinds beyond the container's share, and what
 * the kernel counted but could not report. Together with the container's other latest lines this is the total
 * that the kernel counted.
 */
export interface OverflowLine extends LineContainer {
  readonly event: 'policy_violation_overflow';
  readonly time: string;
  readonly occurrences: number;
}

export type JournalLine = ViolationLine | OverflowLine;
