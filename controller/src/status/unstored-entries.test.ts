import { expect, it } from 'vitest';
import { unstoredEntries } from './unstored-entries.ts';

const SOURCE = { nodeName: 'n1', incarnation: 'i' };
const entry = (sequence: number) => ({
  sequence,
  value: `v${sequence}`,
  previousCount: 0,
  readAtMs: sequence,
});

it('keeps an entry that was read twice once, and tells both readings', () => {
  const entries = unstoredEntries<string>();
  const told: string[] = [];
  entries.add('shop/web', SOURCE, entry(1), () => void told.push('first'));
  entries.add('shop/web', SOURCE, entry(1), () => void told.push('second'));
  entries.add('shop/web', { ...SOURCE, incarnation: 'j' }, entry(1), () => void told.push('other'));
  entries.add('shop/db', SOURCE, entry(2), () => void told.push('db'));
  expect([entries.size, entries.oldestMs(), [...entries.keys()]]).toEqual([3, 1, ['shop/web', 'shop/db']]);
  expect(entries.of('shop/web').map(({ incarnation }) => incarnation)).toEqual(['i', 'j']);
  entries.settle('shop/web', SOURCE, [1, 7]);
  expect(told).toEqual(['first', 'second']);
  expect([entries.size, entries.of('shop/web').length]).toEqual([2, 1]);
  entries.settle('shop/web', { ...SOURCE, incarnation: 'j' }, [1]);
  entries.settle('shop/none', SOURCE, [1]);
  entries.settle('shop/db', SOURCE, [2]);
  expect([entries.size, entries.oldestMs(), [...entries.keys()]]).toEqual([0, undefined, []]);
});
