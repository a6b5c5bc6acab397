/** For so long after trouble, the API server may not have been heard yet: longer than is ever waited before it is asked again. */
const DOUBT_MS = 45_000;

/** Up to when the objects that there are are known: of what was made later nothing can be said. */
export interface KnownUntil {
  /** The API server could not be followed just now. */
  trouble(): void;
  /** Milliseconds of the monotonic clock; now, where there is no trouble. */
  ms(): number;
}

/** See {@link KnownUntil}. */
export function knownUntil(now = () => performance.now()): KnownUntil {
  let sinceMs = 0;
  let doubtEndMs = Number.NEGATIVE_INFINITY;
  return {
    trouble() {
      const at = now();
      if (at >= doubtEndMs) sinceMs = at;
      doubtEndMs = at + DOUBT_MS;
    },
    ms() {
      const at = now();
      return at < doubtEndMs ? sinceMs : at;
    },
  };
}
