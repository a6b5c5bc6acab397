import { expect, it } from 'vitest';
import { type PolicyEntry, policyEntryPool } from './policy-entry-pool.ts';

const entryOf = (key: string): PolicyEntry => [
  key,
  { state: 'ready', mode: 'protect', message: '', digest: '', paths: 1 },
];
const never = (): never => {
  throw new Error('it is known already');
};
/** As many as make the pool begin another generation, whatever is in it. */
const CROWD = Array.from({ length: 16_384 }, (_, index) => `crowd-${index}`);

it('makes one entry of equal bytes, and another of others', () => {
  const pool = policyEntryPool();
  const one = pool.take('one', () => entryOf('one'));
  const other = pool.take('other', () => entryOf('one'));
  expect(pool.take('one', never)).toBe(one);
  expect(pool.take('other', never)).toBe(other);
  expect(one).not.toBe(other);
});

it('keeps what is used, and forgets what is not once too much has come', () => {
  const pool = policyEntryPool();
  const used = pool.take('used', () => entryOf('used'));
  pool.take('unused', () => entryOf('unused'));
  for (let generation = 0; generation < 4; generation++) {
    for (const bytes of CROWD) pool.take(`${generation} ${bytes}`, () => entryOf(bytes));
    expect(pool.take('used', never)).toBe(used);
  }
  let isRead = false;
  pool.take('unused', () => {
    isRead = true;
    return entryOf('unused');
  });
  expect(isRead).toBe(true);
});

it('keeps nothing of what is long, and nothing of what is left out', () => {
  const pool = policyEntryPool();
  let reads = 0;
  for (let time = 0; time < 2; time++) {
    pool.take('x'.repeat(513), () => {
      reads++;
      return entryOf('x');
    });
    pool.take('none', () => {
      reads++;
      return undefined;
    });
  }
  expect(reads).toBe(4);
});
