import { describe, expect, it } from 'vitest';
import { nextTurn, urgently } from './event-loop.ts';

/** More than the longest wait for what is urgent. */
const ENDLESS_MS = 500;

describe('nextTurn', () => {
  it('comes after timers and input that were ready', async () => {
    let ran = false;
    setTimeout(() => (ran = true), 0);
    const start = performance.now();
    while (performance.now() - start < 2);
    await nextTurn();
    await nextTurn();
    expect(ran).toBe(true);
  });

  it('waits until nothing urgent is under way', async () => {
    const [one, other] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const calls = [urgently(() => one.promise), urgently(() => other.promise)];
    let turned = false;
    const turn = nextTurn().then(() => (turned = true));
    await new Promise((resolve) => setTimeout(resolve, 5));
    one.resolve(undefined);
    await new Promise((resolve) => setImmediate(resolve));
    expect(turned).toBe(false);
    other.resolve(undefined);
    await Promise.all([...calls, turn]);
  });

  it('does not wait for ever', async () => {
    const endless = Promise.withResolvers<undefined>();
    const call = urgently(() => endless.promise);
    const start = performance.now();
    await nextTurn();
    expect(performance.now() - start).toBeLessThan(ENDLESS_MS);
    endless.resolve(undefined);
    await call;
  });

  it('forgets urgent work that failed', async () => {
    await expect(urgently(() => Promise.reject(new Error('no such pod')))).rejects.toThrow('no such pod');
    const start = performance.now();
    for (let turns = 0; turns < 100; turns++) await nextTurn();
    expect(performance.now() - start).toBeLessThan(ENDLESS_MS);
  });
});
