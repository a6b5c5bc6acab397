/** How long to wait after each failure in a row. */
export interface BackOffSettings {
  readonly baseMs: number;
  readonly maxMs: number;
  /** A part of the wait that chance adds, so that many clients do not come back at once: 1 at most doubles it. */
  readonly jitter: number;
}

/** The longest wait that a server may ask for. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

/**
 * The wait before the next try, in milliseconds.
 *
 * @param failures in a row until now, from 1 on
 * @param chance from 0 to below 1
 * @param askedMs what the server asked for, if it did: never waits less (but at most 5 minutes)
 */
export function backOffMs(settings: BackOffSettings, failures: number, chance: number, askedMs = 0): number {
  const { baseMs, maxMs, jitter } = settings;
  const wait = Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 52));
  return Math.max(wait, Math.min(askedMs, MAX_RETRY_AFTER_MS)) * (1 + jitter * chance);
}
