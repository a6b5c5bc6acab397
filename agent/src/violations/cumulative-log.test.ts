import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCumulativeLog, type KeptLog, type LogOptions } from './cumulative-log.ts';

function numbers(options: Partial<LogOptions<number>> = {}): KeptLog<number> {
  return createCumulativeLog<number>({ incarnation: 'one', ...options });
}

function keysSince(log: KeptLog<number>, cursor: number, limit = 100): string[] {
  return log.changedSince(cursor, limit).entries.map(({ key, value }) => `${key}=${value}`);
}

describe('what a reader gets', () => {
  it('is the newest state of each key, by its last change', () => {
    const log = numbers();
    for (const [key, value] of [
      ['a', 1],
      ['b', 1],
      ['a', 2],
      ['c', 1],
      ['a', 3],
    ] as const)
      log.put(key, value);
    expect(keysSince(log, 0)).toEqual(['b=1', 'c=1', 'a=3']);
    expect(log.sequence).toBe(5);
    expect(keysSince(log, 5)).toEqual([]);
  });

  it('comes in pages that continue at their cursor', () => {
    const log = numbers();
    for (let index = 0; index < 5; index++) log.put(`k${index}`, 1);
    const first = log.changedSince(0, 2);
    expect(first).toMatchObject({ cursor: 2, more: true });
    const second = log.changedSince(first.cursor, 3);
    expect(second.entries.map(({ key }) => key)).toEqual(['k2', 'k3', 'k4']);
    expect(second.more).toBe(false);
  });

  it('names what was read before as the previous state, and can be read again unchanged', () => {
    const log = numbers();
    log.put('a', 3);
    log.changedSince(0, 10);
    log.put('a', 5);
    log.put('a', 9);
    expect(log.changedSince(0, 10).entries).toMatchObject([
      { sequence: 1, value: 3, previous: undefined },
      { sequence: 3, value: 9, previous: { sequence: 1, value: 3 } },
    ]);
    log.put('a', 10);
    expect(log.changedSince(3, 10).entries).toMatchObject([
      { sequence: 4, value: 10, previous: { sequence: 3, value: 9 } },
    ]);
  });

  it.each([Number.NaN, -1, Number.NEGATIVE_INFINITY])('begins at the start for the cursor %s', (cursor) => {
    const log = numbers();
    log.put('a', 1);
    expect(log.changedSince(cursor, 10)).toMatchObject({ entries: [{ key: 'a' }], cursor: 1 });
  });

  it('is nothing for a cursor that the log never gave', () => {
    const log = numbers();
    log.put('a', 1);
    expect(log.changedSince(7, 10)).toEqual({ entries: [], cursor: 7, more: false });
    log.acknowledge(7);
    expect(log.acknowledged).toBe(0);
  });

  it('waits for its release where entries are held', () => {
    const log = numbers({ held: true });
    log.put('a', 1);
    log.put('b', 1);
    expect(keysSince(log, 0)).toEqual([]);
    log.release(1);
    expect(keysSince(log, 0)).toEqual(['a=1']);
    log.release(99);
    expect(keysSince(log, 1)).toEqual(['b=1']);
  });
});

describe('what is kept', () => {
  it('is the newest state of a living key, acknowledged or not', () => {
    const log = numbers();
    for (let value = 1; value <= 100; value++) {
      log.put('a', value);
      log.acknowledge(log.changedSince(0, 10).cursor);
    }
    expect(log.size).toEqual({ keys: 1, entries: 1 });
    expect([...log.values()]).toEqual([['a', 100]]);
  });

  it('is a removed key until its last state is acknowledged', () => {
    const log = numbers();
    log.put('a', 1);
    log.remove('a');
    log.acknowledge(1);
    expect(keysSince(log, 0)).toEqual(['a=1']);
    expect([...log.values()]).toEqual([]);
    log.acknowledge(1);
    expect(log.size).toEqual({ keys: 0, entries: 0 });
    expect(keysSince(log, 0)).toEqual([]);
  });

  it('forgets at once what was acknowledged before it was removed, and takes a key up again', () => {
    const log = numbers();
    log.put('a', 1);
    log.acknowledge(log.changedSince(0, 1).cursor);
    log.remove('a');
    expect(log.size.keys).toBe(0);
    log.put('a', 2);
    log.remove('a');
    log.put('a', 3);
    expect([...log.values()]).toEqual([['a', 3]]);
    log.acknowledge(log.changedSince(0, 9).cursor);
    expect(log.size).toEqual({ keys: 1, entries: 1 });
  });

  it('is bounded for a reader that never acknowledges, without losing anything', () => {
    const log = numbers({ maxSuperseded: 5 });
    let cursor = 0;
    const deltas: number[] = [];
    const read = (): void => {
      const page = log.changedSince(cursor, 10);
      cursor = page.cursor;
      for (const { value, previous } of page.entries) deltas.push(value - (previous?.value ?? 0));
    };
    for (let value = 1; value <= 100; value++) {
      log.put('a', value);
      read();
    }
    expect(log.size.entries).toBeLessThanOrEqual(8);
    log.acknowledge(cursor);
    read();
    expect(deltas.reduce((sum, delta) => sum + delta)).toBe(100);
  });

  it('is bounded for subjects that are gone while nobody reads', () => {
    let forgotten = 0;
    const log = numbers({ maxEnded: 10, onForgotten: (count) => (forgotten += count) });
    for (let index = 0; index < 100; index++) {
      log.put(`k${index}`, 1);
      log.remove(`k${index}`);
    }
    expect(log.size.keys).toBeLessThanOrEqual(11);
    expect(forgotten).toBe(100 - log.size.keys);
    expect(keysSince(log, 0)[0]).toBe(`k${forgotten}=1`);
  });
});

it('calls its listeners once for many changes, until they end it', async () => {
  const log = numbers();
  let calls = 0;
  const end = log.onChange(() => calls++);
  for (let value = 0; value < 10; value++) log.put('a', value);
  expect(calls).toBe(0);
  await Promise.resolve();
  expect(calls).toBe(1);
  end();
  log.put('a', 11);
  await Promise.resolve();
  expect(calls).toBe(1);
});

/** Subjects that are read by a reader that stores what it counted with a cursor for each of two halves of the keys. */
type Step =
  | { readonly kind: 'put'; readonly key: number; readonly by: number }
  | { readonly kind: 'remove'; readonly key: number }
  | { readonly kind: 'read'; readonly limit: number }
  | { readonly kind: 'store'; readonly half: number }
  | { readonly kind: 'acknowledge' | 'readerCrash' | 'agentRestart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('put'), key: fc.nat(7), by: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove'), key: fc.nat(7) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('read'), limit: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('store'), half: fc.nat(1) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('acknowledge', 'readerCrash', 'agentRestart') }),
  },
);

it('lets a reader count exactly, whoever crashes in between and whatever was stored when', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 120 }),
      fc.integer({ min: 0, max: 4 }),
      (steps, maxSuperseded) => {
        let log = numbers({ maxSuperseded });
        const truth = new Map<string, number>();
        const stored = [
          { cursor: 0, count: 0 },
          { cursor: 0, count: 0 },
        ];
        let cursor = 0;
        let counted = stored.map((half) => ({ ...half }));
        const read = (limit: number): boolean => {
          const page = log.changedSince(cursor, limit);
          for (const { key, sequence, value, previous } of page.entries) {
            const half = counted[Number(key) % 2];
            if (half === undefined || sequence <= half.cursor) continue;
            half.count += value - (previous?.value ?? 0);
            half.cursor = sequence;
          }
          for (const half of counted) half.cursor = Math.max(half.cursor, page.cursor);
          cursor = page.cursor;
          return page.more;
        };
        const store = (half: number): void => {
          const now = counted[half];
          if (now !== undefined) stored[half] = { ...now };
        };
        const acknowledge = (): void => log.acknowledge(Math.min(...stored.map((half) => half.cursor)));
        // A key that is gone never comes back, as containers do not.
        const lives = new Map<number, number>();
        const name = (key: number): string => String(key + 8 * (lives.get(key) ?? 0));
        for (const each of steps) {
          if (each.kind === 'put') {
            const total = (truth.get(name(each.key)) ?? 0) + each.by;
            truth.set(name(each.key), total);
            log.put(name(each.key), total);
          } else if (each.kind === 'remove') {
            log.remove(name(each.key));
            lives.set(each.key, (lives.get(each.key) ?? 0) + 1);
          } else if (each.kind === 'read') read(each.limit);
          else if (each.kind === 'store') store(each.half);
          else if (each.kind === 'acknowledge') acknowledge();
          else if (each.kind === 'readerCrash') {
            counted = stored.map((half) => ({ ...half }));
            cursor = Math.min(...stored.map((half) => half.cursor));
          } else {
            const { incarnation, sequence, acknowledged } = log;
            const entries = log.entries().map((entry) => ({ ...entry }));
            log = numbers({ maxSuperseded, recovered: { incarnation, sequence, acknowledged, entries } });
          }
        }
        for (let round = 0; round < 20; round++) {
          while (read(3));
          store(0);
          store(1);
          acknowledge();
        }
        const sum = [...truth.values()].reduce((total, value) => total + value, 0);
        expect(stored.reduce((total, { count }) => total + count, 0)).toBe(sum);
        expect(log.changedSince(cursor, 1).entries).toEqual([]);
        // Nothing is left but the living.
        expect(log.size.entries).toBe(log.size.keys);
      },
    ),
    { numRuns: 500 },
  );
});

it('takes a hundred thousand changes of ten thousand keys in no time, and keeps only the newest', () => {
  const log = numbers();
  const start = performance.now();
  for (let index = 0; index < 100_000; index++) log.put(`key-${index % 10_000}`, index);
  let cursor = 0;
  for (let more = true; more;) ({ cursor, more } = log.changedSince(cursor, 100));
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(log.size).toEqual({ keys: 10_000, entries: 10_000 });
});
