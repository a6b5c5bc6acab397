import { describe, expect, it } from 'vitest';
import { createRequestPace } from './request-pace.ts';

describe('a pace', () => {
  it('lets a burst go at once, then the rate', async () => {
    const pace = createRequestPace({ perSecond: 100, burst: 5 });
    const fromMs = performance.now();
    for (let turn = 0; turn < 5; turn++) await pace.turn();
    expect(performance.now() - fromMs).toBeLessThan(40);
    for (let turn = 0; turn < 20; turn++) await pace.turn();
    expect(performance.now() - fromMs).toBeGreaterThanOrEqual(190);
  });

  it('ends a wait that is given up, and gives no turn to who asks then', async () => {
    const pace = createRequestPace({ perSecond: 0.01, burst: 1 });
    await pace.turn();
    const controller = new AbortController();
    const waiting = pace.turn(controller.signal);
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow();
    await expect(pace.turn(controller.signal)).rejects.toThrow('enough');
  });
});
