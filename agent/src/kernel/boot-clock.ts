import { uptime } from 'node:os';

/** How long one reading of the two clocks is used: the wall clock may be set at any time. */
const READING_MAX_AGE_MS = 1_000;

/** Turns times of the kernel program into times of the calendar. */
export interface BootClock {
  /** @param bootNs CLOCK_BOOTTIME; @returns Unix epoch in milliseconds, never in the future */
  epochMs(bootNs: bigint): number;
}

interface Clocks {
  /** Seconds since boot. */
  readonly uptime: () => number;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
}

/** A clock that follows corrections of the wall clock; it is right to some 10 ms, as /proc/uptime is. */
export function createBootClock(clocks: Clocks = { uptime, now: Date.now }): BootClock {
  let bootedAtMs = 0;
  let readAtMs = Number.NaN;

  return {
    epochMs(bootNs) {
      const now = clocks.now();
      // A wall clock that was set back makes the age negative; NaN means that it was never read.
      if (!(now - readAtMs >= 0 && now - readAtMs < READING_MAX_AGE_MS)) {
        readAtMs = now;
        bootedAtMs = now - clocks.uptime() * 1_000;
      }
      return Math.min(now, Math.round(bootedAtMs + Number(bootNs / 1_000n) / 1_000));
    },
  };
}
