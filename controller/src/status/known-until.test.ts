import { expect, it } from 'vitest';
import { knownUntil } from './known-until.ts';

it('is now, and with trouble the beginning of it until the API server has been asked again and has had time to answer', () => {
  let nowMs = 1_000;
  const known = knownUntil(() => nowMs);
  expect(known.ms()).toBe(1_000);
  known.trouble(800);
  for (nowMs = 2_000; nowMs <= 900_000; nowMs += 180_000) {
    expect(known.ms()).toBe(1_000);
    known.trouble(60_000);
    // Another that follows something is back sooner.
    known.trouble(800);
  }
  nowMs += 39_000;
  expect(known.ms()).toBe(1_000);
  nowMs += 2_000;
  expect(known.ms()).toBe(nowMs);
  known.trouble(0);
  nowMs += 1_000;
  expect(known.ms()).toBe(nowMs - 1_000);
});
