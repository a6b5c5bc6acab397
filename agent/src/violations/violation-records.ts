import { displayExecutable } from '@runtime-enforcer/api/executable-path';
import type { ViolationAction } from '@runtime-enforcer/api/violation';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ExecEvent, RecordKey, SeenEntry } from '../kernel/enforcer.ts';
import { executableKind } from './executable-kind.ts';
import type { JournalLine, LineContainer, ViolationLine } from './violation-line.ts';

/** Different violations of one container that get a line of their own. */
export const MAX_RECORDS_PER_CONTAINER = 100;
/** Kernel counts of one container that are kept apart: a violation has one for each version of its list. */
const MAX_KEYS_PER_CONTAINER = 4 * MAX_RECORDS_PER_CONTAINER;
/** Readings for which violations must have been without a record before that is reported: events are under way. */
const UNNAMED_READINGS = 2;

/** A violation as it is found, whoever found it. */
export type Occurrence = Pick<
  ViolationLine,
  'executablePath' | 'action' | 'reason' | 'origin' | 'pid' | 'uid' | 'parentName'
> & { readonly timeMs: number };

interface Entry {
  count: bigint;
  firstMs: number;
  lastMs: number;
  latest: Occurrence;
  key: RecordKey | undefined;
  /** Whether the kernel's total holds its occurrences. */
  inTotal: boolean;
  changed: boolean;
}

interface Counted {
  /** Undefined while the record itself is under way. */
  entry: Entry | undefined;
  /** How much of the kernel's count is in the entry; undefined: that is not known, take the next as it is. */
  count: bigint | undefined;
}

/** The violations of one container. */
export interface ContainerRecords {
  /** Takes an event of the kernel. Returns whether it has, or got, a record of its own. */
  event(event: ExecEvent): 'new' | 'repeat' | 'over quota';
  /** Takes something that the kernel did not see happen. */
  found(occurrence: Occurrence): void;
  /** Takes the kernel's counts, and its total as it was read before them. */
  counts(seen: readonly SeenEntry[], total: bigint): void;
  /** Continues what an earlier agent wrote. */
  recover(line: JournalLine): void;
  /** The lines that changed since the last call. */
  changedLines(time: string): JournalLine[];
  /** What the lines say of the container. */
  container: LineContainer;
}

export function createContainerRecords(container: LineContainer): ContainerRecords {
  const entries = new Map<string, Entry>();
  const counted = new Map<RecordKey, Counted>();
  let total = 0n;
  let overQuota = false;
  let unnamedReadings = 0;
  let overflow = 0n;
  let writtenOverflow = 0n;

  const unnamed = (): bigint => {
    let named = 0n;
    for (const { inTotal, count } of entries.values()) if (inTotal) named += count;
    return total > named ? total - named : 0n;
  };

  const entryFor = (occurrence: Occurrence, inTotal: boolean): Entry | undefined => {
    const id = JSON.stringify([occurrence.action, occurrence.executablePath, inTotal]);
    const known = entries.get(id);
    if (known !== undefined || entries.size >= MAX_RECORDS_PER_CONTAINER) return known;
    const { timeMs } = occurrence;
    const entry: Entry = {
      ...{ count: 0n, firstMs: timeMs, lastMs: timeMs, latest: occurrence, key: undefined },
      ...{ inTotal, changed: false },
    };
    entries.set(id, entry);
    return entry;
  };

  const occurred = (entry: Entry, occurrence: Occurrence, count: bigint): void => {
    entry.count += count;
    entry.firstMs = Math.min(entry.firstMs, occurrence.timeMs);
    if (occurrence.timeMs >= entry.lastMs) entry.latest = occurrence;
    entry.lastMs = Math.max(entry.lastMs, occurrence.timeMs);
    entry.changed = true;
  };

  const line = (entry: Entry, time: string): ViolationLine => {
    const { executablePath, action, reason, origin, pid, uid, parentName } = entry.latest;
    const recordCount = entry.key === undefined ? undefined : counted.get(entry.key)?.count;
    return {
      event: 'policy_violation',
      time,
      ...records.container,
      ...{ executablePath, action, origin },
      ...(reason !== undefined && { reason }),
      ...(pid !== undefined && { pid }),
      ...(uid !== undefined && { uid }),
      ...(parentName !== undefined && { parentName }),
      occurrences: Number(entry.count),
      firstObservedTimestamp: new Date(entry.firstMs).toISOString(),
      lastObservedTimestamp: new Date(entry.lastMs).toISOString(),
      ...(entry.key !== undefined && { recordKey: entry.key }),
      ...(recordCount !== undefined && { recordCount: Number(recordCount) }),
    };
  };

  const records: ContainerRecords = {
    container,
    event(event) {
      const occurrence = occurrenceOf(event);
      const known = counted.get(event.key);
      const entry = known?.entry ?? entryFor(occurrence, true);
      if (entry === undefined) {
        overQuota = true;
        return 'over quota';
      }
      const isNew = entry.count === 0n;
      if (known === undefined || known.entry !== undefined) {
        // For a known kind of record the kernel has forgotten its count, and begins again.
        occurred(entry, occurrence, 1n);
        if (known !== undefined) known.count = 1n;
        else if (counted.size < MAX_KEYS_PER_CONTAINER) counted.set(event.key, { entry, count: 1n });
      } else {
        known.entry = entry;
        occurred(entry, occurrence, known.count ?? 1n);
        known.count ??= 1n;
      }
      entry.key = event.key;
      return isNew ? 'new' : 'repeat';
    },
    found(occurrence) {
      const entry = entryFor(occurrence, false);
      if (entry === undefined) overQuota = true;
      else if (entry.count === 0n) occurred(entry, occurrence, 1n);
    },
    counts(seen, newTotal) {
      if (newTotal > total) total = newTotal;
      for (const { key, count, lastMs } of seen) {
        const known = counted.get(key);
        if (known === undefined) {
          if (counted.size < MAX_KEYS_PER_CONTAINER) counted.set(key, { entry: undefined, count });
          continue;
        }
        const before = known.count;
        known.count = count;
        if (known.entry === undefined || before === undefined || count === before) continue;
        const more = count > before ? count - before : count;
        occurred(known.entry, { ...known.entry.latest, timeMs: Math.max(lastMs, known.entry.lastMs) }, more);
      }
      const rest = unnamed();
      unnamedReadings = rest > 0n ? unnamedReadings + 1 : 0;
      if (overQuota || unnamedReadings >= UNNAMED_READINGS || rest < overflow) overflow = rest;
    },
    recover(recovered) {
      if (recovered.event === 'policy_violation_overflow') {
        overflow = writtenOverflow = BigInt(recovered.occurrences);
        return;
      }
      const { recordKey, recordCount, occurrences } = recovered;
      const { firstObservedTimestamp, lastObservedTimestamp } = recovered;
      const { executablePath, action, reason, origin, pid, uid, parentName } = recovered;
      const occurrence: Occurrence = {
        ...{ executablePath, action, origin, timeMs: Date.parse(lastObservedTimestamp) },
        ...(reason !== undefined && { reason }),
        ...(pid !== undefined && { pid }),
        ...(uid !== undefined && { uid }),
        ...(parentName !== undefined && { parentName }),
      };
      const entry = entryFor(occurrence, recordKey !== undefined);
      if (entry === undefined) return;
      entry.count = BigInt(occurrences);
      entry.firstMs = Date.parse(firstObservedTimestamp);
      entry.lastMs = occurrence.timeMs;
      entry.latest = occurrence;
      entry.key = recordKey;
      if (recordKey !== undefined && counted.size < MAX_KEYS_PER_CONTAINER) {
        counted.set(recordKey, { entry, count: recordCount === undefined ? undefined : BigInt(recordCount) });
      }
    },
    changedLines(time) {
      const lines: JournalLine[] = [];
      for (const entry of entries.values()) {
        if (!entry.changed) continue;
        entry.changed = false;
        lines.push(line(entry, time));
      }
      if (overflow !== writtenOverflow) {
        writtenOverflow = overflow;
        const occurrences = Number(overflow);
        lines.push({ event: 'policy_violation_overflow', time, ...records.container, occurrences });
      }
      return lines;
    },
  };
  return records;
}

/** What the lines say of a container. */
export function lineContainer(container: BoundContainer, nodeName: string): LineContainer {
  const { namespace, podName, containerName, containerId, image, workload, policy = '' } = container;
  return {
    ...{ namespace, podName, containerName, containerId, image, nodeName },
    workloadKind: workload.kind,
    workloadName: workload.name,
    policyName: policy.slice(policy.indexOf('/') + 1),
  };
}

function occurrenceOf(event: ExecEvent): Occurrence {
  const action: ViolationAction = event.mode ?? 'monitor';
  const { reason, origin, pid, uid, parentCommand, timeMs, path } = event;
  return {
    executablePath: displayExecutable(path, executableKind(reason)),
    ...{ action, origin, pid, uid, parentName: parentCommand, timeMs },
    ...(reason !== undefined && { reason }),
  };
}
