import { setImmediate as nextTurn } from 'node:timers/promises';

/** Longest that a round holds the event loop. */
const SLICE_MS = 20;

/** Looks at what is due, once per interval. */
export interface StatusRounds {
  /** Looked at in the next round. */
  add(key: string): void;
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

/** Where it is not ready yet, it asks again after this. */
const READY_MS = 50;

/** See {@link StatusRounds}. */
export function statusRounds(options: StatusRoundsOptions): StatusRounds {
  const { intervalMs, concurrency, isReady, look, onRound } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let due = new Set<string>();
  let running: Promise<void> = Promise.resolve();

  async function round(): Promise<void> {
    const keys = due.values();
    due = new Set();
    let sliceEnd = performance.now() + SLICE_MS;
    const worker = async (): Promise<void> => {
      for (const key of keys) {
        if (signal.aborted) return;
        await look(key, signal);
        if (performance.now() < sliceEnd) continue;
        await nextTurn();
        sliceEnd = performance.now() + SLICE_MS;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
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
    add: (key) => void due.add(key),
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
