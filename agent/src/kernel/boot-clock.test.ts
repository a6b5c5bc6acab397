import { describe, expect, it } from 'vitest';
import { createBootClock } from './boot-clock.ts';

describe('boot clock', () => {
  it('adds the time since boot to the time of the boot', () => {
    const clock = createBootClock({ uptime: () => 100, now: () => 1_000_000 });
    expect(clock.epochMs(99_500_000_000n)).toBe(999_500);
    expect(clock.epochMs(0n)).toBe(900_000);
  });

  it('never tells a time in the future', () => {
    const clock = createBootClock({ uptime: () => 100, now: () => 1_000_000 });
    expect(clock.epochMs(200_000_000_000n)).toBe(1_000_000);
  });

  it('follows a wall clock that is set, forwards and back', () => {
    let now = 1_000_000;
    let up = 100;
    const clock = createBootClock({ uptime: () => up, now: () => now });
    expect(clock.epochMs(100_000_000_000n)).toBe(1_000_000);
    now += 3_600_000 + 2_000;
    up += 2;
    expect(clock.epochMs(102_000_000_000n)).toBe(now);
    now -= 7_200_000;
    expect(clock.epochMs(102_000_000_000n)).toBe(now);
  });

  it('is near the real clock', () => {
    const clock = createBootClock();
    const bootNs = process.hrtime.bigint();
    expect(Math.abs(clock.epochMs(bootNs) - Date.now())).toBeLessThan(1_000);
  });
});
