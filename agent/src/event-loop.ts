import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';

/** Work that can wait does not wait longer for what cannot: a runtime that starts pods without end must not stop it. */
const MAX_WAIT_MS = 20;

/** Of this process's one loop. */
let urgentCalls = 0;
let idle = Promise.withResolvers<undefined>();

/** Runs what somebody waits for, as the runtime does for an answer. Settles as `work` does. */
export async function urgently<T>(work: () => Promise<T>): Promise<T> {
  urgentCalls++;
  try {
    return await work();
  } finally {
    urgentCalls--;
    if (urgentCalls === 0) {
      idle.resolve(undefined);
      idle = Promise.withResolvers();
    }
  }
}

/**
 * To be awaited between the slices of work that takes long: everything else gets its turn, and what is urgent comes to
 * its end, for at most 20 ms.
 */
export async function nextTurn(): Promise<void> {
  await turn();
  if (urgentCalls === 0) return;
  const ended = new AbortController();
  await Promise.race([
    idle.promise,
    delay(MAX_WAIT_MS, undefined, { signal: ended.signal }).catch(() => undefined),
  ]);
  ended.abort();
}
