import { EXEC_ORIGINS } from '@runtime-enforcer/api/exec-origin';
import { VIOLATION_ACTIONS, VIOLATION_REASONS, type Violation } from '@runtime-enforcer/api/violation';
import type { RecordKey } from '../kernel/enforcer.ts';
import { isCount } from './count.ts';
import type { JournalLine } from './violation-line.ts';

/**
 * How often one violation has occurred in one container of this node. With `overflow`, it stands for those of the
 * container that have no record of their own: `executablePath` is empty, and `action` that of its latest record.
 */
export interface NodeViolation extends Violation {
  readonly containerId: string;
  readonly overflow?: true;
  /** Which count of the kernel's goes on with it; absent for what was found running. */
  readonly recordKey?: RecordKey;
  /** How much of that count is in `occurrences`: what the kernel has counted since is added to it by the next agent. */
  readonly recordCount?: number;
}

/** Equal for repeats of one violation in one container. */
export function nodeViolationKey(violation: NodeViolation): string {
  const { containerId, action, executablePath, recordKey, overflow } = violation;
  return JSON.stringify(
    overflow === true
      ? [containerId]
      : [containerId, action, executablePath, recordKey === undefined ? 0 : 1],
  );
}

/** The line from which the records of a container go on. */
export function recoveredLine(violation: NodeViolation, time: string): JournalLine {
  const { workloadKind = '', workloadName = '', image = '', ...rest } = violation;
  const { origin = 'unknown', occurrences, containerId } = violation;
  const { namespace, podName, containerName, nodeName, policyName } = violation;
  const container = { namespace, podName, containerName, containerId, nodeName, policyName };
  const all = { ...container, workloadKind, workloadName, image };
  if (violation.overflow === true) return { event: 'policy_violation_overflow', time, ...all, occurrences };
  return { event: 'policy_violation', time, ...rest, ...all, origin };
}

/** What was read from a journal, if it is one: only what is counted on with is looked at closely. */
export function asNodeViolation(value: unknown): NodeViolation | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const violation = value as Readonly<Record<string, unknown>>;
  const { occurrences, action, reason, origin, recordKey, recordCount, overflow, pid, uid } = violation;
  const texts = [
    ...['namespace', 'podName', 'containerName', 'containerId', 'nodeName', 'policyName', 'executablePath'],
    ...['firstObservedTimestamp', 'lastObservedTimestamp'],
  ];
  const isWhole =
    texts.every((name) => typeof violation[name] === 'string') &&
    ['workloadName', 'workloadKind', 'parentName', 'image'].every(
      (name) => violation[name] === undefined || typeof violation[name] === 'string',
    ) &&
    isCount(occurrences) &&
    isOneOf(VIOLATION_ACTIONS, action) &&
    (reason === undefined || isOneOf(VIOLATION_REASONS, reason)) &&
    (origin === undefined || isOneOf(EXEC_ORIGINS, origin)) &&
    (recordKey === undefined || typeof recordKey === 'string') &&
    (overflow === undefined || overflow === true) &&
    [pid, uid, recordCount].every((number) => number === undefined || isCount(number)) &&
    isTime(violation['firstObservedTimestamp']) &&
    isTime(violation['lastObservedTimestamp']);
  return isWhole ? (value as NodeViolation) : undefined;
}

function isOneOf(words: readonly string[], value: unknown): boolean {
  return typeof value === 'string' && words.includes(value);
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}
