import { expect, it } from 'vitest';
import { knownUntil } from './known-until.ts';

it('is now, and with trouble the beginning of it until it has been over for a while', () => {
  let nowMs = 1_000;
  const known = knownUntil(() => nowMs);
  expect(known.ms()).toBe(1_000);
  known.trouble();
  for (nowMs = 2_000; nowMs <= 200_000; nowMs += 30_000) {
    expect(known.ms()).toBe(1_000);
    known.trouble();
  }
  nowMs += 14_000;
  expect(known.ms()).toBe(1_000);
  nowMs += 2_000;
  expect(known.ms()).toBe(nowMs);
  known.trouble();
  nowMs += 1_000;
  expect(known.ms()).toBe(nowMs - 1_000);
});
