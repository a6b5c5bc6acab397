import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { fakeReporting } from '../node/fake-kernel.ts';
import { createNodeComparison } from './node-comparison.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function comparisonOver(resynchronize: () => Promise<void>) {
  const failures: string[] = [];
  const { log, lines } = fakeReporting();
  const comparison = createNodeComparison({
    ...{ node: { resynchronize }, watch: { compare: () => 2 }, log, everyMs: 1_000 },
    failures: (place) => failures.push(place),
  });
  return { comparison, failures, lines };
}

it('compares again and again, and counts and tells what differed', async () => {
  let asked = 0;
  const { comparison, failures, lines } = comparisonOver(() => {
    asked++;
    return Promise.resolve();
  });
  comparison.start();
  await vi.advanceTimersByTimeAsync(5_100);
  await comparison.stop();
  const rounds = asked;
  expect(rounds).toBeGreaterThanOrEqual(4);
  expect(rounds).toBeLessThanOrEqual(6);
  expect(failures).toEqual(Array<string>(2 * rounds).fill('policy_difference'));
  expect(lines[0]).toMatchObject({ level: 'error', fields: { policies: 2 } });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(rounds);
});

it('goes on after a runtime that does not answer, and asks no second time meanwhile', async () => {
  let asked = 0;
  const first = Promise.withResolvers<undefined>();
  const { comparison, failures } = comparisonOver(() => {
    asked++;
    return asked === 1 ? first.promise : Promise.resolve();
  });
  comparison.start();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked).toBe(1);
  first.reject(new Error('it hung up'));
  await vi.advanceTimersByTimeAsync(1_300);
  expect(asked).toBe(2);
  expect(failures).toContain('node_comparison');
  await comparison.stop();
});
