import { MAX_PATH_TEXT_CHARACTERS } from './executable-path.ts';
import { EXEC_ORIGINS, type ExecOrigin } from './exec-origin.ts';
import { mapped, object, oneOf, text, wholeNumber, type Check, type ObjectOf } from './schema.ts';
import { earlier, later, timestamp } from './timestamp.ts';

/** What was done about a violation, which is the policy's mode at that moment. */
export type ViolationAction = 'monitor' | 'protect';

/** Why an exec was a violation. All but the first two mean that no list could have allowed it. */
export type ViolationReason =
  | 'Unlisted'
  | 'UnlistedContainer'
  | 'Unresolved'
  | 'TooLong'
  | 'Unlinked'
  | 'Memfd'
  | 'ForeignMount'
  | 'OtherMountNamespace'
  | 'NoScratch'
  | 'NoPolicy';

export const VIOLATION_ACTIONS = ['monitor', 'protect'] as const satisfies readonly ViolationAction[];
export const VIOLATION_REASONS = [
  'Unlisted',
  'UnlistedContainer',
  'Unresolved',
  'TooLong',
  'Unlinked',
  'Memfd',
  'ForeignMount',
  'OtherMountNamespace',
  'NoScratch',
  'NoPolicy',
] as const satisfies readonly ViolationReason[];

/** Repeats of one violation in a policy's status. What is optional describes its latest occurrence. */
export interface ViolationRecord {
  /** Unique within the policy. */
  readonly id: number;
  readonly podName: string;
  readonly containerName: string;
  /** For display: also memfd, deleted and unresolved executables, which no list can hold. */
  readonly executablePath: string;
  readonly nodeName: string;
  readonly action: ViolationAction;
  readonly occurrences: number;
  readonly firstObservedTimestamp: string;
  readonly lastObservedTimestamp: string;
  readonly reason?: ViolationReason;
  readonly origin?: ExecOrigin;
  readonly workloadName?: string;
  readonly workloadKind?: string;
  /** Of the process, in the host's pid namespace. */
  readonly pid?: number;
  readonly uid?: number;
  /** Command name of the parent process: chosen by the tenant. */
  readonly parentName?: string;
  readonly containerId?: string;
  readonly image?: string;
}

/** Repeats of one violation as an agent reports them. */
export interface Violation extends Omit<ViolationRecord, 'id'> {
  readonly namespace: string;
  readonly policyName: string;
}

/** What tells one violation from another. Within a policy's status the namespace goes without saying. */
export type ViolationIdentity = Pick<
  ViolationRecord,
  'podName' | 'containerName' | 'executablePath' | 'action'
> & { readonly namespace?: string };

/** Equal exactly for repeats of one violation, whatever characters the names hold. */
export function violationKey(violation: ViolationIdentity): string {
  const { namespace = '', podName, containerName, executablePath, action } = violation;
  return JSON.stringify([namespace, podName, containerName, executablePath, action]);
}

/**
 * One record for two of the same violation: occurrences added, the earliest and the latest time, everything else
 * from whichever was observed last. The id, if any, is the first one's.
 */
export function mergeViolation<T extends Omit<ViolationRecord, 'id'>>(known: T, repeat: Omit<T, 'id'>): T {
  const latest = later(known.lastObservedTimestamp, repeat.lastObservedTimestamp);
  const details = latest === known.lastObservedTimestamp ? { ...repeat, ...known } : { ...known, ...repeat };
  return {
    ...details,
    occurrences: known.occurrences + repeat.occurrences,
    firstObservedTimestamp: earlier(known.firstObservedTimestamp, repeat.firstObservedTimestamp),
    lastObservedTimestamp: latest,
  };
}

/** One entry per violation, in the order in which each was first given. */
export function mergeViolations(violations: Iterable<Violation>): Violation[] {
  const merged = new Map<string, Violation>();
  for (const violation of violations) {
    const key = violationKey(violation);
    const known = merged.get(key);
    merged.set(key, known === undefined ? violation : mergeViolation(known, violation));
  }
  return [...merged.values()];
}

/** `/memfd:` or ` (deleted)` may stand around the text of the longest path. */
const MAX_DISPLAY_CHARACTERS = MAX_PATH_TEXT_CHARACTERS + 16;

const name = text({ max: 253 });

const required = {
  podName: name,
  containerName: name,
  executablePath: text({ max: MAX_DISPLAY_CHARACTERS }),
  nodeName: name,
  action: oneOf(VIOLATION_ACTIONS),
  lastObservedTimestamp: timestamp,
};

const optional = {
  occurrences: wholeNumber({ min: 0 }),
  firstObservedTimestamp: timestamp,
  reason: oneOf(VIOLATION_REASONS),
  origin: oneOf(EXEC_ORIGINS),
  workloadName: name,
  workloadKind: text({ max: 63 }),
  pid: wholeNumber({ min: 0, max: 4_194_304 }),
  uid: wholeNumber({ min: 0, max: 4_294_967_295 }),
  parentName: text({ max: 64 }),
  containerId: name,
  image: text({ max: 1024 }),
};

type Given = ObjectOf<typeof required, typeof optional>;

/** A record of a policy's status. */
export const violationRecord: Check<ViolationRecord> = mapped(
  object({ id: wholeNumber({ min: 0 }), ...required }, optional),
  withDefaults,
);

/** A violation as an agent reports it. */
export const violation: Check<Violation> = mapped(
  object({ namespace: name, policyName: name, ...required }, optional),
  withDefaults,
);

function withDefaults<T extends Given>(record: T) {
  return {
    ...record,
    occurrences: record.occurrences ?? 1,
    firstObservedTimestamp: record.firstObservedTimestamp ?? record.lastObservedTimestamp,
  };
}
