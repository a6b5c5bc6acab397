import { nextTurn } from '../event-loop.ts';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { SeenEntry } from '../kernel/enforcer.ts';
import type { Logger } from '../nri/handlers.ts';

/** How often the kernel's counts are read. */
const READING_MS = 3_000;
/** How long one turn of the loop may be taken by a reading. */
const SLICE_MS = 2;

/** The kernel's counts of records and violations, read now and then. */
export interface PeriodicReading {
  start(): void;
  /** Reads now, after a reading that is under way. Never rejects. */
  read(): Promise<void>;
  /**
   * The container is about to be forgotten: its total is read now, as its slot gets another container, and is told
   * with the next reading. Costs one look into the kernel, so that pods that come and go cost no more. Never throws.
   */
  leave(container: BoundContainer): void;
  stop(): Promise<void>;
}

export function createPeriodicReading(parts: {
  containers: () => Iterable<BoundContainer>;
  /** Violations of a container so far. */
  total: (slot: number) => bigint;
  /** The counts that changed since the last call. */
  seen: () => Promise<readonly SeenEntry[]>;
  /** The counts of one container; `seen` are those that changed. */
  onContainer: (container: BoundContainer, total: bigint, seen: readonly SeenEntry[]) => void;
  /** Every container that there is, or was during the reading, has been told. */
  onRead: (presentIds: ReadonlySet<string>) => void;
  onFailure: () => void;
  log: Logger;
}): PeriodicReading {
  const { containers, total, seen, onContainer, onRead, onFailure, log } = parts;
  const left: { readonly container: BoundContainer; readonly total: bigint }[] = [];
  let last: Promise<void> = Promise.resolve();
  /** Has not begun, and so serves everyone who asks now. */
  let queued: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let trouble = false;

  const fail = (error: unknown): void => {
    onFailure();
    if (!trouble) log.error({ err: error }, "the kernel's counts cannot be read; trying again");
    trouble = true;
  };
  const totalOf = ({ slot, state }: BoundContainer): bigint =>
    slot > 0 && state === 'enforced' ? total(slot) : 0n;

  const readOnce = async (): Promise<void> => {
    const leaving = [...left];
    try {
      // Totals come first: what happens later is then in the counts, never missing from them.
      const counted = [
        ...leaving,
        ...Array.from(containers(), (container) => ({ container, total: totalOf(container) })),
      ];
      const changed = byPlace(await seen());
      let sliceStart = performance.now();
      for (const { container, total } of counted) {
        onContainer(container, total, changed.get(placeOf(container)) ?? []);
        if (performance.now() - sliceStart < SLICE_MS) continue;
        await nextTurn();
        sliceStart = performance.now();
      }
      onRead(new Set(counted.map(({ container }) => container.containerId)));
      left.splice(0, leaving.length);
      trouble = false;
    } catch (error) {
      fail(error);
    }
  };
  const read = (): Promise<void> => {
    if (queued !== undefined) return queued;
    const next = last.then(() => {
      queued = undefined;
      return readOnce();
    });
    queued = last = next;
    return next;
  };
  const schedule = (): void => {
    timer = setTimeout(() => void read().then(() => timer !== undefined && schedule()), READING_MS);
  };

  return {
    start: schedule,
    read,
    leave(container) {
      try {
        left.push({ container, total: totalOf(container) });
      } catch (error) {
        fail(error);
      }
    },
    async stop() {
      clearTimeout(timer);
      timer = undefined;
      await last;
    },
  };
}

function byPlace(entries: readonly SeenEntry[]): ReadonlyMap<string, readonly SeenEntry[]> {
  const places = new Map<string, SeenEntry[]>();
  for (const entry of entries) {
    const place = placeOf(entry);
    const known = places.get(place);
    if (known === undefined) places.set(place, [entry]);
    else known.push(entry);
  }
  return places;
}

function placeOf({ slot, generation }: { readonly slot: number; readonly generation: number }): string {
  return `${slot}.${generation}`;
}
