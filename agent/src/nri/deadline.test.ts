import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { acceptRequestTimeout, answerBudget, DeadlineExceededError, withDeadline } from './deadline.ts';

describe('answerBudget', () => {
  it.each([
    [2_000, undefined, 1_500],
    [2_000, 5_000, 1_500],
    [2_000, 400, 300],
    [2_000, 0.5, 1],
  ])('of a request timeout of %d ms and a call timeout of %s ms is %d ms', (request, call, budget) => {
    expect(answerBudget(request, call)).toBe(budget);
  });
});

describe('acceptRequestTimeout', () => {
  it.each([
    [0, 2_000],
    [-5, 2_000],
    [5_000, 5_000],
    [2 ** 63, 600_000],
  ])('takes %d as %d ms', (configured, accepted) => {
    expect(acceptRequestTimeout(configured)).toBe(accepted);
  });
});

describe('withDeadline', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('settles as the work does and leaves no timer', async () => {
    await expect(withDeadline(100, 'late', () => Promise.resolve(7))).resolves.toBe(7);
    await expect(withDeadline(100, 'late', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('rejects when the time is up, aborts the work and ignores how it ends', async () => {
    let signal: AbortSignal | undefined;
    const late = withDeadline(100, 'late', async (deadline) => {
      signal = deadline;
      await new Promise((resolve) => setTimeout(resolve, 500));
      throw new Error('ignored');
    });
    const rejected = expect(late).rejects.toThrow(new DeadlineExceededError('late'));
    await vi.advanceTimersByTimeAsync(99);
    expect(signal?.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await rejected;
    expect(signal?.aborted).toBe(true);
    await vi.advanceTimersByTimeAsync(1_000);
  });
});
