import { expect, it } from 'vitest';
import { createEventBudget } from './event-budget.ts';

const BUDGETS = { ofNode: { burst: 4, refillMs: 10 }, ofPod: { burst: 3, refillMs: 100 } };

it('lets a pod have a few at once, then one whenever its time has come', () => {
  const may = createEventBudget(BUDGETS);
  const asked = (nowMs: number, times: number): number =>
    Array.from({ length: times }, () => may('shop/web', nowMs)).filter(Boolean).length;
  expect(asked(1_000, 10)).toBe(3);
  expect(asked(1_099, 10)).toBe(0);
  expect(asked(1_101, 10)).toBe(1);
  expect(asked(9_000, 10)).toBe(3);
});

it('lets all pods of the node together have no more than theirs, whatever new ones come', () => {
  const may = createEventBudget(BUDGETS);
  let written = 0;
  for (let nowMs = 0; nowMs < 1_000; nowMs++) if (may(`shop/pod-${nowMs}`, nowMs)) written++;
  expect(written).toBeGreaterThanOrEqual(4 + 99);
  expect(written).toBeLessThanOrEqual(4 + 100);
});

it('takes nothing from other pods for one that has none left', () => {
  const may = createEventBudget({ ...BUDGETS, ofNode: { burst: 4, refillMs: 1_000_000 } });
  for (let asked = 0; asked < 100; asked++) may('shop/noisy', 0);
  expect(may('shop/other', 0)).toBe(true);
  expect(may('shop/other', 0)).toBe(false);
});

it('forgets pods that were silent the longest', () => {
  const may = createEventBudget({ ofNode: { burst: 1e9, refillMs: 1 }, ofPod: { burst: 1, refillMs: 1e9 } });
  expect([may('first', 0), may('first', 0)]).toEqual([true, false]);
  for (let number = 0; number < 1_024; number++) may(`pod-${number}`, 0);
  expect(may('first', 0)).toBe(true);
});
