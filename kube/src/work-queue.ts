import { ApiError } from './api-error.ts';
import { backOffMs, type BackOffSettings } from './back-off.ts';

/** A failure that no repetition repairs: the key is given up until it is added again. */
export class TerminalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TerminalError';
  }
}

export interface WorkQueueOptions {
  /**
   * Brings one key up to date. Never runs twice at once for the same key.
   * @returns milliseconds after which to run again, or undefined
   */
  readonly process: (key: string, signal: AbortSignal) => Promise<number | undefined> | number | undefined;
  /** Keys that are worked on at once; 1 when left out. */
  readonly concurrency?: number;
  readonly backOff?: BackOffSettings;
  /** Failures in a row after which a key is given up; 15 when left out. */
  readonly maxFailures?: number;
  /** Told every failure; `retryMs` is undefined when the key is given up. Must not throw. */
  readonly onFailure: (key: string, error: unknown, retryMs: number | undefined) => void;
}

/** client-go's, with a lower ceiling and some chance. */
const BACK_OFF: BackOffSettings = { baseMs: 5, maxMs: 60_000, jitter: 0.5 };
const MAX_FAILURES = 15;

/** Keys waiting to be worked on: each once, however often it is added. */
export interface WorkQueue {
  /** As soon as possible, and once more if it is being worked on now. Nothing after `stop`. */
  add(key: string): void;
  addAfter(key: string, ms: number): void;
  start(): void;
  /** Tells running work to end, and waits for it; what waits is dropped. */
  stop(): Promise<void>;
  /** Keys that wait their turn, are worked on, and wait for a time. */
  depth(): { readonly waiting: number; readonly running: number; readonly delayed: number };
}

/** See {@link WorkQueue}. */
export function workQueue(options: WorkQueueOptions): WorkQueue {
  const { process, onFailure, concurrency = 1, maxFailures = MAX_FAILURES, backOff = BACK_OFF } = options;
  const stopping = new AbortController();
  const waiting = new Set<string>();
  const running = new Map<string, Promise<void>>();
  /** Added while being worked on. */
  const again = new Set<string>();
  const timers = new Map<string, { readonly timer: NodeJS.Timeout; readonly dueMs: number }>();
  const failures = new Map<string, number>();
  let isStarted = false;

  function add(key: string): void {
    if (stopping.signal.aborted) return;
    // What was to be done later is done now.
    clearTimeout(timers.get(key)?.timer);
    timers.delete(key);
    if (running.has(key)) again.add(key);
    else waiting.add(key);
    fill();
  }

  function addAfter(key: string, ms: number): void {
    if (stopping.signal.aborted) return;
    const dueMs = performance.now() + ms;
    const known = timers.get(key);
    if (known !== undefined && known.dueMs <= dueMs) return;
    clearTimeout(known?.timer);
    const timer = setTimeout(() => {
      timers.delete(key);
      add(key);
    }, ms);
    timers.set(key, { timer, dueMs });
  }

  function fill(): void {
    if (!isStarted) return;
    for (const key of waiting) {
      if (running.size >= concurrency || stopping.signal.aborted) return;
      waiting.delete(key);
      running.set(key, run(key));
    }
  }

  async function run(key: string): Promise<void> {
    // The caller of add must not be made to wait for synchronous work.
    await Promise.resolve();
    let nextMs: number | undefined;
    try {
      nextMs = await process(key, stopping.signal);
      failures.delete(key);
    } catch (error) {
      if (!stopping.signal.aborted) nextMs = failed(key, error);
    }
    running.delete(key);
    if (again.delete(key)) add(key);
    else if (nextMs !== undefined) addAfter(key, nextMs);
    fill();
  }

  function failed(key: string, error: unknown): number | undefined {
    const count = (failures.get(key) ?? 0) + 1;
    if (error instanceof TerminalError || count >= maxFailures) {
      failures.delete(key);
      onFailure(key, error, undefined);
      return undefined;
    }
    failures.set(key, count);
    const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
    const retryMs = backOffMs(backOff, count, Math.random(), asked);
    onFailure(key, error, retryMs);
    return retryMs;
  }

  return {
    add,
    addAfter,
    start() {
      isStarted = true;
      fill();
    },
    async stop() {
      stopping.abort();
      for (const { timer } of timers.values()) clearTimeout(timer);
      timers.clear();
      waiting.clear();
      await Promise.all(running.values());
    },
    depth: () => ({ waiting: waiting.size, running: running.size, delayed: timers.size }),
  };
}
