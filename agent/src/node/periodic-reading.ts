import type { BoundContainer } from '../containers/bound-container.ts';
import type { SeenEntry } from '../kernel/enforcer.ts';
import type { Logger } from '../nri/handlers.ts';

/** How often the kernel's counts are read. */
const READING_MS = 3_000;

/** The kernel's counts of records and violations, read now and then. */
export interface PeriodicReading {
  start(): void;
  /** Reads now, after a reading that is under way. Never rejects. */
  read(): Promise<void>;
  stop(): Promise<void>;
}

export function createPeriodicReading(parts: {
  containers: () => Iterable<BoundContainer>;
  /** Violations of a container so far. */
  total: (slot: number) => bigint;
  seen: () => Promise<readonly SeenEntry[]>;
  onReading: (
    containers: readonly BoundContainer[],
    totals: ReadonlyMap<string, bigint>,
    seen: readonly SeenEntry[],
  ) => void;
  onFailure: () => void;
  log: Logger;
}): PeriodicReading {
  const { containers, total, seen, onReading, onFailure, log } = parts;
  let last: Promise<void> = Promise.resolve();
  /** Has not begun, and so serves everyone who asks now. */
  let queued: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let trouble = false;

  const readOnce = async (): Promise<void> => {
    try {
      const present = [...containers()];
      const totals = new Map<string, bigint>();
      // Totals come first: what happens later is then in the counts, never missing from them.
      for (const { slot, state, containerId } of present) {
        if (slot > 0 && state === 'enforced') totals.set(containerId, total(slot));
      }
      onReading(present, totals, await seen());
      trouble = false;
    } catch (error) {
      onFailure();
      if (!trouble) log.error({ err: error }, "the kernel's counts cannot be read; trying again");
      trouble = true;
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
    async stop() {
      clearTimeout(timer);
      timer = undefined;
      await last;
    },
  };
}
