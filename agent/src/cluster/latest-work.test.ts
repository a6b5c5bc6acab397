import { expect, it } from 'vitest';
import { createLatestWork } from './latest-work.ts';

function bringing() {
  const state = new Map<string, number>();
  const brought: [key: string, value: number | undefined][] = [];
  let idle = 0;
  const work = createLatestWork({
    turn: () => Promise.resolve(),
    bring(key) {
      brought.push([key, state.get(key)]);
      return Promise.resolve();
    },
    onIdle: () => idle++,
  });
  const put = (key: string, value: number): void => {
    state.set(key, value);
    work.look(key);
  };
  return { work, put, brought, idle: () => idle };
}

it('ends with the newest state, in whichever moment of the bringing before it comes', async () => {
  for (let microtasks = 0; microtasks < 20; microtasks++) {
    const { work, put, brought } = bringing();
    put('a', 1);
    for (let i = 0; i < microtasks; i++) await Promise.resolve();
    put('a', 2);
    await new Promise(setImmediate);
    expect([brought.at(-1), work.isIdle, work.isLooking('a')]).toEqual([['a', 2], true, false]);
  }
});

it('brings what changes many times meanwhile once, and tells when all is done', async () => {
  const { work, put, brought, idle } = bringing();
  for (let value = 0; value < 100; value++) put('a', value);
  put('b', 1);
  expect(work.isIdle).toBe(false);
  await work.settled();
  expect(brought).toEqual([
    ['a', 99],
    ['b', 1],
  ]);
  expect(idle()).toBe(1);
});

it('begins nothing after its end, and lets a key that is hurried go before its turn', async () => {
  const turns: (() => void)[] = [];
  const brought: string[] = [];
  const work = createLatestWork({
    turn: () => new Promise((resolve) => turns.push(resolve)),
    bring: (key) => Promise.resolve(void brought.push(key)),
    onIdle: () => undefined,
  });
  for (const key of ['a', 'b', 'c']) work.look(key);
  await work.hurry('b');
  expect([brought, work.longerThan(-1)]).toEqual([['b'], 2]);
  work.end();
  await work.settled();
  expect([brought, work.isIdle]).toEqual([['b'], true]);
});
