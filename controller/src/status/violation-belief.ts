import { later } from '@runtime-enforcer/api/timestamp';
import type { JournalEntry } from '@runtime-enforcer/api/violation-status';
import type { ReportedViolation } from '@runtime-enforcer/rpc/reported';
import type { Belief } from './believed-entries.ts';
import type { PodPlaces } from './pod-places.ts';
import type { EntrySource, UnstoredEntry } from './unstored-entries.ts';

/** What was just made may be known to an agent sooner than to the controller. */
export const GRACE_MS = 10_000;
/** By how much the clocks of a cluster may differ. */
const CLOCK_SKEW_MS = 60_000;

export interface ViolationContext {
  readonly pods: PodPlaces;
  /** `namespace/name` */
  readonly policy: string;
  readonly policyCreatedAt: number;
  /** Nodes that have told, before, of pods of the policy that they did run. */
  readonly knownNodes: ReadonlySet<string>;
  /** Up to when the API server's pods are known, of the monotonic clock. */
  readonly knownUntilMs: number;
}

/**
 * Whether a node may say this. Of a pod that the API server does not know any more, it may if it runs, or has run, pods
 * of the policy: about those it could say anything.
 */
export function violationBelief(
  { value, readAtMs }: UnstoredEntry<ReportedViolation>,
  { nodeName }: EntrySource,
  { pods, policy, policyCreatedAt, knownNodes, knownUntilMs }: ViolationContext,
): Belief {
  if (value.nodeName !== nodeName) return 'OtherNode';
  // Of an earlier policy of this name.
  if (Date.parse(value.lastObservedTimestamp) < policyCreatedAt - CLOCK_SKEW_MS) return 'UnknownObject';
  const answer = pods.isOn(`${value.namespace}/${value.podName}`, nodeName, policy);
  if (answer === 'yes') return 'believed';
  if (answer === 'no') return 'OtherPod';
  if (knownNodes.has(nodeName) || pods.nodesOf(policy).has(nodeName)) return 'believed';
  return knownUntilMs - readAtMs < GRACE_MS ? 'later' : 'UnknownPod';
}

/**
 * The entry as a status counts it. A time ahead of ours would keep a record on top for as long as it is ahead.
 * @param now RFC 3339
 */
export function journalEntry(entry: UnstoredEntry<ReportedViolation>, now: string): JournalEntry {
  const { sequence, value, previousCount } = entry;
  const violation = withoutPlace(value);
  const isAhead = Date.parse(value.lastObservedTimestamp) > Date.parse(now) + CLOCK_SKEW_MS;
  if (!isAhead) return { sequence, violation, previousCount };
  const firstIsAhead = later(now, value.firstObservedTimestamp) !== now;
  return {
    sequence,
    previousCount,
    violation: {
      ...violation,
      lastObservedTimestamp: now,
      ...(firstIsAhead && { firstObservedTimestamp: now }),
    },
  };
}

const PLACE: ReadonlySet<string> = new Set(['namespace', 'policyName', 'overflow']);

/** What a record holds: whose status it is in goes without saying. */
function withoutPlace(value: ReportedViolation): JournalEntry['violation'] {
  const kept = Object.entries(value).filter(([field]) => !PLACE.has(field));
  return Object.fromEntries(kept) as unknown as JournalEntry['violation'];
}
