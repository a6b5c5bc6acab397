import { REFLECTOR_TIMINGS } from '@runtime-enforcer/kube/reflector';

/** A try to follow the API server again has failed, and is told as trouble, or has been answered by then. */
const TRY_MS = REFLECTOR_TIMINGS.silenceMs + 10_000;

/** Up to when the objects that there are are known: of what was made later nothing can be said. */
export interface KnownUntil {
  /**
   * The API server could not be followed just now.
   * @param waitMs until it is asked again
   */
  trouble(waitMs: number): void;
  /** Milliseconds of the monotonic clock; now, where there is no trouble. */
  ms(): number;
}

/** See {@link KnownUntil}. */
export function knownUntil(now = () => performance.now()): KnownUntil {
  let sinceMs = 0;
  let doubtEndMs = Number.NEGATIVE_INFINITY;
  return {
    trouble(waitMs) {
      const at = now();
      if (at >= doubtEndMs) sinceMs = at;
      // Of several that follow something, another may wait longer.
      doubtEndMs = Math.max(doubtEndMs, at + waitMs + TRY_MS);
    },
    ms() {
      const at = now();
      return at < doubtEndMs ? sinceMs : at;
    },
  };
}
