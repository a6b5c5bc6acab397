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

/** Looks at what is due, once per interval. */
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
  /** Each key with the time from which on it is quiet; 0 for what does not wait. */
  let due = new Map<string, number>();
  /** When each key was looked at within the last interval. */
  const looked = new Map<string, number>();
  let running: Promise<void> = Promise.resolve();

  async function round(): Promise<void> {
    let batch = due;
    due = new Map();
    for (const [key, lookedMs] of looked) {
      if (lookedMs + intervalMs * SAME_ROUND > performance.now()) continue;
      looked.delete(key);
    }
    const patienceEnd = performance.now() + MAX_WAIT_MS;
    while (batch.size > 0 && !signal.aborted) {
      const now = performance.now();
      const quiet: string[] = [];
      const restless = new Map<string, number>();
      for (const [key, before] of batch) {
        const again = due.get(key);
        const quietFrom = again === undefined || again === 0 ? (again ?? before) : Math.max(before, again);
        due.delete(key);
        if (looked.has(key)) due.set(key, quietFrom);
        else if (quietFrom <= now || now >= patienceEnd) quiet.push(key);
        else restless.set(key, quietFrom);
      }
      await lookAtAll(quiet);
      batch = restless;
      if (restless.size > 0) await pause(QUIET_MS);
    }
  }

  async function lookAtAll(all: readonly string[]): Promise<void> {
    const keys = all.values();
    let sliceEnd = performance.now() + SLICE_MS;
    const worker = async (): Promise<void> => {
      for (const key of keys) {
        if (signal.aborted) return;
        looked.set(key, performance.now());
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
      await round();
      const tookMs = performance.now() - startMs;
      onRound(tookMs);
      await pause(Math.max(0, intervalMs - tookMs));
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
    add: (key) => void due.set(key, 0),
    addOnceQuiet(keys) {
      const quietFrom = performance.now() + QUIET_MS;
      for (const key of keys) if (due.get(key) !== 0) due.set(key, quietFrom);
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
