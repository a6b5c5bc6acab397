import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { OUTCOME_NAMES } from './outcomes.ts';

const GUIDE = readFileSync(new URL('../../../docs/kernel.md', import.meta.url), 'utf8');

/** Names in the first column of the tables of one section, in order. */
function namesIn(section: string): string[] {
  const [, text = ''] = new RegExp(`^## ${section}\n(.*?)(?=^## )`, 'ms').exec(GUIDE) ?? [];
  return text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .flatMap((line) =>
      Array.from((line.split('|')[1] ?? '').matchAll(/`([a-z_]+)`/g), ([, name]) => name ?? ''),
    );
}

test('field 79: docs/kernel.md tells of every counter of outcomes what it means, once, and of no other', () => {
  expect(namesIn('What it counts').sort()).toEqual([...OUTCOME_NAMES].sort());
});
