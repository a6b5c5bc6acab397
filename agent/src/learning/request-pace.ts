import { setTimeout as sleep } from 'node:timers/promises';

/** Lets requests go one after the other, never more than so many in a time. */
export interface RequestPace {
  /** Resolves when it is the caller's turn; turns are given in the order of asking. Rejects when `signal` aborts. */
  turn(signal?: AbortSignal): Promise<void>;
}

/**
 * @param perSecond over a long time
 * @param burst at once, after a pause
 */
export function createRequestPace({
  perSecond,
  burst,
}: {
  readonly perSecond: number;
  readonly burst: number;
}): RequestPace {
  const intervalMs = 1_000 / perSecond;
  /** When the next turn would be, if there were no bursts. */
  let nextMs = 0;
  return {
    async turn(signal) {
      signal?.throwIfAborted();
      const nowMs = performance.now();
      nextMs = Math.max(nextMs, nowMs - intervalMs * (burst - 1));
      const waitMs = nextMs - nowMs;
      nextMs += intervalMs;
      if (waitMs > 0) await sleep(waitMs, undefined, signal === undefined ? {} : { signal });
    },
  };
}
