import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_MERGE_POSITIONS } from './limits.ts';
import { advancePositions, positionsByKey, sequenceKey } from './merge-position.ts';

const position = fc.record({
  nodeName: fc.constantFrom('a', 'b', 'c'),
  incarnation: fc.constantFrom('one', 'two', 'three'),
  sequence: fc.nat(9),
});

it('positions never go back, and the two latest incarnations of a node are kept', () => {
  fc.assert(
    fc.property(fc.array(fc.array(position, { maxLength: 4 })), (steps) => {
      let positions = advancePositions([], []);
      for (const moved of steps) {
        const before = positionsByKey(positions);
        positions = advancePositions(positions, moved);
        const after = positionsByKey(positions);
        for (const each of moved.slice(-1)) {
          const key = sequenceKey(each);
          expect(after.get(key)).toBeGreaterThanOrEqual(Math.max(each.sequence, before.get(key) ?? 0));
        }
        for (const nodeName of ['a', 'b', 'c']) {
          expect(positions.filter((each) => each.nodeName === nodeName).length).toBeLessThanOrEqual(2);
        }
      }
    }),
  );
});

it('those of nodes that have not moved for longest are left out', () => {
  const all = Array.from({ length: MAX_MERGE_POSITIONS }, (_, index) => ({
    nodeName: `n${index}`,
    incarnation: 'i',
    sequence: 1,
  }));
  const moved = [
    { nodeName: 'n0', incarnation: 'i', sequence: 2 },
    { nodeName: 'new', incarnation: 'i', sequence: 1 },
  ];
  const after = advancePositions(all, moved);
  expect(after.length).toBe(MAX_MERGE_POSITIONS);
  expect(after.slice(-2)).toEqual(moved);
  expect(after[0]).toEqual(all[2]);
});
