import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { fakeContainer, fakeReporting } from './fake-kernel.ts';
import { createPeriodicReading } from './periodic-reading.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function readingOver(seen: () => Promise<[]>) {
  const reporting = fakeReporting();
  const readings: ReadonlyMap<string, bigint>[] = [];
  const failures: string[] = [];
  const containers = [
    fakeContainer(),
    fakeContainer({ containerId: 'c2', slot: 2, state: 'learning' }),
    fakeContainer({ containerId: 'c3', slot: 0, state: 'waiting' }),
  ];
  const reading = createPeriodicReading({
    ...{ containers: () => containers, total: (slot) => BigInt(slot) * 10n, seen, log: reporting.log },
    onReading: (_containers, totals) => void readings.push(totals),
    onFailure: () => void failures.push('failed'),
  });
  return { reading, readings, failures, ...reporting };
}

it('reads every few seconds, and totals of enforced containers alone', async () => {
  const { reading, readings } = readingOver(() => Promise.resolve([]));
  reading.start();
  await vi.advanceTimersByTimeAsync(10_000);
  await reading.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(readings).toEqual(Array.from({ length: 3 }, () => new Map([['c1', 10n]])));
});

it('serves everyone who asks during a reading with the next one', async () => {
  const turns: (() => void)[] = [];
  const { reading, readings } = readingOver(() => new Promise((resolve) => turns.push(() => resolve([]))));
  const first = reading.read();
  await vi.advanceTimersByTimeAsync(0);
  const others = [reading.read(), reading.read(), reading.read()];
  turns.shift()?.();
  await first;
  await vi.advanceTimersByTimeAsync(0);
  turns.shift()?.();
  await Promise.all(others);
  expect(readings).toHaveLength(2);
});

it('goes on after a failure, which it tells once', async () => {
  let works = false;
  const { reading, readings, failures, lines } = readingOver(() =>
    works ? Promise.resolve([]) : Promise.reject(new Error('closed')),
  );
  reading.start();
  await vi.advanceTimersByTimeAsync(7_000);
  works = true;
  await vi.advanceTimersByTimeAsync(3_000);
  await reading.stop();
  expect([readings.length, failures.length, lines.length]).toEqual([1, 2, 1]);
});
