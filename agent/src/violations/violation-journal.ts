import type { BoundContainer } from '../containers/bound-container.ts';
import type { ExecEvent, SeenEntry } from '../kernel/enforcer.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import {
  createContainerRecords,
  lineContainer,
  type ContainerRecords,
  type Occurrence,
} from './violation-records.ts';
import type { JournalLine } from './violation-line.ts';

/** How long the records of a container that ended are kept, for events that are under way. */
const ENDED_GRACE_MS = 15_000;

interface Tracked {
  readonly records: ContainerRecords;
  slot: number;
  generation: number;
  endedAtMs: number | undefined;
  /** Violations under earlier slots of the container, and under its present one. */
  earlierTotal: bigint;
  slotTotal: bigint;
}

/** Turns what the kernel reports of violations into lines: new ones at once, counts when they are read. */
export interface ViolationJournal {
  events(events: readonly ExecEvent[]): void;
  /** Programs that already ran unlisted when their container was bound. */
  found(container: BoundContainer, occurrences: readonly Occurrence[]): void;
  /**
   * Takes a reading of the kernel's counts of one container and writes what changed.
   * @param total violations of the container in its present slot, read before `seen`
   * @param seen the counts that changed
   */
  counts(container: BoundContainer, total: bigint, seen: readonly SeenEntry[]): void;
  /** Ends a reading: every container that there is has been counted, the others have ended. */
  counted(presentIds: ReadonlySet<string>): void;
  /** Continues the lines that an earlier agent wrote about a container. Only before the container's first event. */
  recover(lines: Iterable<JournalLine>): void;
}

export function createViolationJournal(options: {
  nodeName: string;
  write: (line: JournalLine) => void;
  log: Logger;
  counters: AgentCounters;
  /** Unix epoch, in milliseconds. */
  now?: () => number;
  /** A clock that nobody sets, in milliseconds. */
  monotonicMs?: () => number;
  /** Called for each container about which nothing more will be written. */
  onEnded?: (containerId: string) => void;
}): ViolationJournal {
  const { nodeName, write, log, counters, now = Date.now, onEnded } = options;
  const { monotonicMs = () => performance.now() } = options;
  const tracked = new Map<string, Tracked>();
  const recovered = new Map<string, JournalLine[]>();

  const recordsOf = (container: BoundContainer): Tracked => {
    const { containerId, slot, generation } = container;
    let known = tracked.get(containerId);
    if (known === undefined) {
      const records = createContainerRecords(lineContainer(container, nodeName));
      for (const line of recovered.get(containerId) ?? []) records.recover(line);
      recovered.delete(containerId);
      known = { records, slot, generation, endedAtMs: undefined, earlierTotal: 0n, slotTotal: 0n };
      tracked.set(containerId, known);
    }
    known.records.container = lineContainer(container, nodeName);
    return known;
  };

  const flush = ({ records }: Tracked): void => {
    for (const line of records.changedLines(new Date(now()).toISOString())) write(line);
  };

  return {
    events(events) {
      const news = new Set<Tracked>();
      for (const event of events) {
        counters.add('events_violation');
        const { container } = event;
        if (container === undefined) {
          counters.add('events_without_container');
          const { slot, generation, pid, command } = event;
          log.warn({ slot, generation, pid, command }, 'violation in a container that is not known any more');
          continue;
        }
        const known = recordsOf(container);
        const result = known.records.event(event);
        if (result === 'new') news.add(known);
        if (result === 'over quota') counters.add('violations_over_quota');
      }
      for (const known of news) flush(known);
    },
    found(container, occurrences) {
      if (occurrences.length === 0) return;
      const known = recordsOf(container);
      for (const occurrence of occurrences) known.records.found(occurrence);
      flush(known);
    },
    counts(container, total, seen) {
      const { containerId, slot, generation } = container;
      if (total === 0n && !tracked.has(containerId)) return;
      const known = recordsOf(container);
      if (known.slot !== slot || known.generation !== generation) {
        known.earlierTotal += known.slotTotal;
        Object.assign(known, { slot, generation, slotTotal: 0n });
      }
      if (total > known.slotTotal) known.slotTotal = total;
      known.records.counts(
        seen.filter(({ mode }) => mode !== undefined),
        known.earlierTotal + known.slotTotal,
      );
      flush(known);
    },
    counted(presentIds) {
      for (const [containerId, known] of tracked) {
        if (presentIds.has(containerId)) {
          known.endedAtMs = undefined;
          continue;
        }
        known.endedAtMs ??= monotonicMs();
        known.records.counts([], 0n);
        flush(known);
        if (monotonicMs() - known.endedAtMs < ENDED_GRACE_MS) continue;
        tracked.delete(containerId);
        onEnded?.(containerId);
      }
      // Whoever is not there at the first reading has ended under the agent before.
      for (const containerId of recovered.keys()) {
        if (presentIds.has(containerId)) continue;
        recovered.delete(containerId);
        onEnded?.(containerId);
      }
    },
    recover(lines) {
      for (const line of lines) {
        const known = recovered.get(line.containerId);
        if (known === undefined) recovered.set(line.containerId, [line]);
        else known.push(line);
      }
    },
  };
}
