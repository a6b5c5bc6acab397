import { describe, expect, it } from 'vitest';
import { backOffMs } from './back-off.ts';

const settings = { baseMs: 100, maxMs: 1_000, jitter: 1 };

describe('backOffMs', () => {
  it.each([
    [1, 0, 0, 100],
    [2, 0, 0, 200],
    [5, 0, 0, 1_000],
    [100_000, 0, 0, 1_000],
    [1, 0.5, 0, 150],
    [1, 0, 5_000, 5_000],
    [5, 0, 500, 1_000],
    [1, 0, 1e12, 300_000],
  ])('after %d failures with chance %d and %d ms asked: %d ms', (failures, chance, asked, wait) => {
    expect(backOffMs(settings, failures, chance, asked)).toBe(wait);
  });
});
