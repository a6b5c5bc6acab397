import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { SeenEntry } from '../kernel/enforcer.ts';
import { fakeContainer, fakeReporting, fakeSeen } from './fake-kernel.ts';
import { createPeriodicReading } from './periodic-reading.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function readingOver(seen: () => Promise<readonly SeenEntry[]>) {
  const reporting = fakeReporting();
  const readings: Map<string, bigint>[] = [];
  const told: [containerId: string, total: bigint, seen: number][] = [];
  const failures: string[] = [];
  const containers = [
    fakeContainer(),
    fakeContainer({ containerId: 'c2', slot: 2, state: 'learning' }),
    fakeContainer({ containerId: 'c3', slot: 0, state: 'waiting' }),
  ];
  const reading = createPeriodicReading({
    ...{ containers: () => containers, total: (slot) => BigInt(slot) * 10n, seen, log: reporting.log },
    onContainer: ({ containerId }, total, changed) => void told.push([containerId, total, changed.length]),
    onRead: (presentIds) =>
      void readings.push(
        new Map([...presentIds].map((id) => [id, told.findLast(([of]) => of === id)?.[1] ?? -1n])),
      ),
    onFailure: () => void failures.push('failed'),
  });
  return { reading, readings, told, containers, failures, ...reporting };
}

it('reads every few seconds, and totals of enforced containers alone', async () => {
  const { reading, readings } = readingOver(() => Promise.resolve([]));
  reading.start();
  await vi.advanceTimersByTimeAsync(10_000);
  await reading.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  const each = new Map([
    ['c1', 10n],
    ['c2', 0n],
    ['c3', 0n],
  ]);
  expect(readings).toEqual([each, each, each]);
});

it('tells the counts of a container that left once more, under the slot that it had', async () => {
  const gone = fakeContainer({ containerId: 'gone', slot: 7, generation: 3 });
  const { reading, readings, told } = readingOver(() => Promise.resolve([fakeSeen(gone, 'k', 2n)]));
  reading.leave(gone);
  await reading.read();
  await reading.read();
  expect(told.filter(([id]) => id === 'gone')).toEqual([['gone', 70n, 1]]);
  expect(readings.map((ids) => ids.has('gone'))).toEqual([true, false]);
});

it('keeps what left for the next reading when one fails', async () => {
  let works = false;
  const { reading, told } = readingOver(() =>
    works ? Promise.resolve([]) : Promise.reject(new Error('closed')),
  );
  reading.leave(fakeContainer({ containerId: 'gone', slot: 7 }));
  await reading.read();
  works = true;
  await reading.read();
  expect(told.filter(([id]) => id === 'gone')).toEqual([['gone', 70n, 0]]);
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
