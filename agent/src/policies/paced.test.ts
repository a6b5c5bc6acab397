import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createPacer } from './paced.ts';

describe('pacer', () => {
  it('lets the loop turn between callers that take long together, in their order', async () => {
    const begin = createPacer();
    const order: number[] = [];
    const work = async (number: number): Promise<void> => {
      await begin();
      order.push(number);
      const end = performance.now() + 2;
      while (performance.now() < end);
    };
    const all = Promise.all(Array.from({ length: 20 }, (_, number) => work(number)));
    await nextTurn();
    expect(order.length).toBeLessThan(10);
    await all;
    expect(order).toEqual(Array.from({ length: 20 }, (_, number) => number));
  });
});
