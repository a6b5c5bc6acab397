import { setImmediate as nextTurn } from 'node:timers/promises';

/** Longest that a round holds the event loop. */
const SLICE_MS = 20;
/** What changes on many nodes at once is looked at when it has been quiet for so long, */
const QUIET_MS = 300;
/** or after this. */
const MAX_WAIT_MS = 5_000;
/** Of the interval: rounds do not begin to the millisecond. */
const SAME_ROUND = 0.8;
/** Where it is not ready yet, it asks again after this. */
const READY_MS = 50;

/** What is to be looked at, and when. */
interface Due {
  readonly quietFromMs: number;
  /** It is looked at then even if it is not quiet. */
  readonly patienceEndMs: number;
}

const AT_ONCE: Due = { quietFromMs: 0, patienceEndMs: 0 };

/** Looks at what is due, each key once per interval at most. */
export interface StatusRounds {
  /** Looked at in the next round. */
  add(key: string): void;
  /** Looked at in the next round, when no more of the same has come for a moment. */
  addOnceQuiet(keys: Iterable<string>): void;
  start(): void;
  /** Ends the round under way. */
  stop(): Promise<void>;
  readonly waiting: number;
}

export interface StatusRoundsOptions {
  readonly intervalMs: number;
  /** Keys that are looked at at once. */
  readonly concurrency: number;
  /** Whether anything may be looked at yet. */
  readonly isReady: () => boolean;
  /** Never rejects; a key that is to be looked at again adds itself. */
  readonly look: (key: string, signal: AbortSignal) => Promise<void>;
  readonly onRound: (durationMs: number) => void;
}

/** See {@link StatusRounds}. */
export function statusRounds(options: StatusRoundsOptions): StatusRounds {
  const { intervalMs, concurrency, isReady, look, onRound } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const due = new Map<string, Due>();
  /** When each key was looked at within the last interval. */
  const looked = new Map<string, number>();
  let running: Promise<void> = Promise.resolve();

  /** @returns whether something is due that is not quiet yet: the next round is not to wait for the interval then */
  async function round(): Promise<boolean> {
    const now = performance.now();
    for (const [key, lookedMs] of looked) {
      if (lookedMs + intervalMs * SAME_ROUND <= now) looked.delete(key);
    }
    const ready = [...due.keys()].filter((key) => !looked.has(key) && isTime(key, now));
    await lookAtAll(ready);
    return [...due.keys()].some((key) => !looked.has(key) && !isTime(key, now));
  }

  function isTime(key: string, now: number): boolean {
    const { quietFromMs, patienceEndMs } = due.get(key) ?? AT_ONCE;
    return quietFromMs <= now || patienceEndMs <= now;
  }

  async function lookAtAll(all: readonly string[]): Promise<void> {
    const keys = all.values();
    let sliceEnd = performance.now() + SLICE_MS;
    const worker = async (): Promise<void> => {
      for (const key of keys) {
        if (signal.aborted) return;
        const now = performance.now();
        // Since the round began, more of a crowd may have come.
        if (!isTime(key, now)) continue;
        due.delete(key);
        looked.set(key, now);
        await look(key, signal);
        if (performance.now() < sliceEnd) continue;
        await nextTurn();
        sliceEnd = performance.now() + SLICE_MS;
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, all.length) }, worker));
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const startMs = performance.now();
      if (!isReady()) {
        await pause(READY_MS);
        continue;
      }
      const isRestless = await round();
      const tookMs = performance.now() - startMs;
      onRound(tookMs);
      await pause(Math.max(0, (isRestless ? Math.min(QUIET_MS, intervalMs) : intervalMs) - tookMs));
    }
  }

  async function pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done);
      function done(): void {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      }
    });
  }

  return {
    add: (key) => void due.set(key, AT_ONCE),
    addOnceQuiet(keys) {
      const now = performance.now();
      const quietFromMs = now + QUIET_MS;
      for (const key of keys) {
        const before = due.get(key);
        if (before === AT_ONCE) continue;
        due.set(key, { quietFromMs, patienceEndMs: before?.patienceEndMs ?? now + MAX_WAIT_MS });
      }
    },
    start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
    get waiting() {
      return due.size;
    },
  };
}
