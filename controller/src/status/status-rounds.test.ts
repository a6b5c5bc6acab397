import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type StatusRounds, statusRounds } from './status-rounds.ts';

let looks: string[];
let rounds: StatusRounds;
let isReady: boolean;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  looks = [];
  isReady = true;
  rounds = statusRounds({
    intervalMs: 1_000,
    concurrency: 4,
    isReady: () => isReady,
    look: (key) => {
      looks.push(`${Math.floor((performance.now() - start) / 10) * 10} ${key}`);
      return Promise.resolve();
    },
    onRound: () => undefined,
  });
});
let start: number;
const begin = (): void => {
  start = performance.now();
  rounds.start();
};
afterEach(async () => {
  await rounds.stop();
  vi.useRealTimers();
  // What fast tests leave behind would be taken for the next one's.
  await sleep(0);
});

it('looks at a key once per interval, however often it is added', async () => {
  rounds.add('a');
  rounds.add('a');
  begin();
  await vi.advanceTimersByTimeAsync(10);
  rounds.add('a');
  rounds.add('b');
  expect(rounds.waiting).toBe(2);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(looks).toEqual(['0 a', '1000 a', '1000 b']);
});

it('waits until what comes in a crowd is quiet, but not for others and not for ever', async () => {
  begin();
  await vi.advanceTimersByTimeAsync(900);
  for (let count = 0; count < 80; count++) {
    rounds.addOnceQuiet(['crowd']);
    if (count === 0) rounds.addOnceQuiet(['once']);
    if (count === 0) rounds.add('urgent');
    if (count === 20) rounds.add('later');
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(2_000);
  expect(looks.slice(0, 4)).toEqual(['1000 urgent', '1300 once', '3100 later', '6100 crowd']);
  const [last = '', ...more] = looks.slice(4);
  expect(more).toEqual([]);
  // 300 ms after the last of the crowd, at 8,800, and at the pace of looking.
  expect(Number(/^(\d+) crowd$/.exec(last)?.[1])).toBeGreaterThanOrEqual(9_100);
  expect(Number(/^(\d+) crowd$/.exec(last)?.[1])).toBeLessThanOrEqual(9_500);
});

it('looks at nothing before it may', async () => {
  isReady = false;
  rounds.add('a');
  begin();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(looks).toEqual([]);
  isReady = true;
  await vi.advanceTimersByTimeAsync(60);
  expect(looks.length).toBe(1);
});
