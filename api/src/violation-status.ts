import type { ExecutablePath } from './executable-path.ts';
import { MAX_VIOLATION_RECORD_BYTES, MAX_VIOLATION_RECORDS } from './limits.ts';
import { advancePositions, positionsByKey, sequenceKey, type MergePosition } from './merge-position.ts';
import { mergeViolation, violationKey, type ViolationRecord } from './violation.ts';
import type { WorkloadPolicySpec } from './workload-policy.ts';
import type { WorkloadPolicyStatus } from './workload-policy-status.ts';

/** Where counts stop. Ids go on beyond, and JavaScript holds them exactly. */
const MAX_COUNT = 2 ** 52;

/** One entry of an agent's journal: what `violation` counts minus `previousCount` is new. */
export interface JournalEntry {
  readonly sequence: number;
  readonly violation: Omit<ViolationRecord, 'id'>;
  readonly previousCount: number;
}

/** Entries of one sequence that concern one policy, in order. */
export interface JournalBatch {
  readonly nodeName: string;
  readonly incarnation: string;
  readonly entries: readonly JournalEntry[];
}

type Counted = Pick<WorkloadPolicyStatus, 'violations' | 'violationCount' | 'mergedFrom'>;

/**
 * The records, the count and the positions with what agents have told since: each entry counts once, whatever part of a
 * batch was counted before. `added` are the records that there were none of. Bounds are not applied.
 */
export function mergeJournals(
  before: Counted,
  batches: Iterable<JournalBatch>,
): Counted & { readonly added: readonly ViolationRecord[] } {
  const known = new Set(before.violations.map(({ id }) => id));
  const records = new Map(before.violations.map((record) => [violationKey(record), record]));
  const positions = positionsByKey(before.mergedFrom);
  const moved: MergePosition[] = [];
  // A count that was lowered by hand must not give an id again.
  let nextId = Math.max(0, ...[...known].map((id) => id + 1));
  let count = before.violationCount;
  for (const { nodeName, incarnation, entries } of batches) {
    let sequence = positions.get(sequenceKey({ nodeName, incarnation })) ?? 0;
    const start = sequence;
    for (const entry of entries) {
      if (entry.sequence <= sequence) continue;
      sequence = entry.sequence;
      const added = entry.violation.occurrences - entry.previousCount;
      const key = violationKey(entry.violation);
      const record = records.get(key);
      if (record !== undefined) {
        const merged = mergeViolation(record, { ...entry.violation, occurrences: added });
        records.set(key, { ...merged, occurrences: Math.min(merged.occurrences, MAX_COUNT) });
      } else if (added > 0) {
        const id = Math.max(nextId, count);
        nextId = id + 1;
        records.set(key, { id, ...firstRecord(entry, added) });
      }
      count = Math.min(count + added, MAX_COUNT);
    }
    if (sequence > start) moved.push({ nodeName, incarnation, sequence });
  }
  const violations = [...records.values()];
  return {
    violations,
    violationCount: count,
    mergedFrom: advancePositions(before.mergedFrom, moved),
    added: violations.filter(({ id }) => !known.has(id)),
  };
}

/** Of what had a record before, which is gone, nothing but the latest time is known to be new. */
function firstRecord({ violation, previousCount }: JournalEntry, occurrences: number) {
  if (previousCount === 0) return { ...violation, occurrences };
  return { ...violation, occurrences, firstObservedTimestamp: violation.lastObservedTimestamp };
}

/**
 * Whether the rules allow by now what was a violation. One whose reason is not its path stays: no list allows, for
 * example, what ran in another mount namespace.
 */
export function isAllowedNow(
  { containerName, executablePath, reason = 'Unlisted' }: ViolationRecord,
  {
    rulesByContainer,
    unlistedContainers,
  }: Pick<WorkloadPolicySpec, 'rulesByContainer' | 'unlistedContainers'>,
): boolean {
  if (reason !== 'Unlisted' && reason !== 'UnlistedContainer') return false;
  const rules = rulesByContainer.get(containerName);
  if (rules === undefined) return unlistedContainers === 'allow';
  return rules.executables.allowed.includes(executablePath as ExecutablePath);
}

/**
 * The records that a status has room for, newest first. What is the same but for the pod shares its places: first the
 * newest record of each executable in each container, then the second of each, and so on. So a burst of replicas
 * leaves no other violation without a record.
 */
export function boundedRecords(records: readonly ViolationRecord[]): readonly ViolationRecord[] {
  const newestFirst = records.toSorted(byLastObserved);
  const isWithin = newestFirst.length <= MAX_VIOLATION_RECORDS;
  if (isWithin && bytesOf(newestFirst) <= MAX_VIOLATION_RECORD_BYTES) return newestFirst;
  const ranks = new Map<string, number>();
  const ranked = newestFirst.map((record) => {
    const { containerName, executablePath, action } = record;
    const group = JSON.stringify([containerName, executablePath, action]);
    const rank = ranks.get(group) ?? 0;
    ranks.set(group, rank + 1);
    return { record, rank };
  });
  let bytes = 0;
  const chosen: ViolationRecord[] = [];
  for (const { record } of ranked.toSorted((one, other) => one.rank - other.rank)) {
    bytes += bytesOf(record);
    if (chosen.length === MAX_VIOLATION_RECORDS || bytes > MAX_VIOLATION_RECORD_BYTES) break;
    chosen.push(record);
  }
  return chosen.toSorted(byLastObserved);
}

/** What of a list, its first entries first, has room in a status. */
export function withinBytes<T>(entries: readonly T[]): readonly T[] {
  let bytes = 0;
  const end = entries.findIndex((entry) => (bytes += bytesOf(entry)) > MAX_VIOLATION_RECORD_BYTES);
  return end < 0 ? entries : entries.slice(0, end);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

function byLastObserved(one: ViolationRecord, other: ViolationRecord): number {
  return Date.parse(other.lastObservedTimestamp) - Date.parse(one.lastObservedTimestamp) || other.id - one.id;
}
