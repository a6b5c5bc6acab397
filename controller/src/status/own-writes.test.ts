import { beforeEach, expect, it } from 'vitest';
import { type OwnWrites, ownWrites } from './own-writes.ts';

const KEY = 'shop/web';
let foreign: string[];
let writes: OwnWrites;
beforeEach(() => {
  foreign = [];
  writes = ownWrites((key) => foreign.push(key));
});

it('leaves out what was written here, whether the watch or the answer comes first', () => {
  writes.begin(KEY);
  writes.end(KEY, '7');
  writes.heard(KEY, '7');
  writes.begin(KEY);
  writes.heard(KEY, '8');
  writes.end(KEY, '8');
  expect(foreign).toEqual([]);
});

it('tells what others have written, also the same version once more', () => {
  writes.heard(KEY, '1');
  writes.begin(KEY);
  writes.end(KEY, '7');
  writes.heard(KEY, '7');
  writes.heard(KEY, '7');
  expect(foreign).toEqual([KEY, KEY]);
});

it('tells what came after its own write, and not what the write has seen', () => {
  writes.begin(KEY);
  writes.heard(KEY, '6');
  writes.heard(KEY, '7');
  writes.end(KEY, '7');
  expect(foreign).toEqual([]);
  writes.begin(KEY);
  writes.heard(KEY, '8');
  writes.heard(KEY, '9');
  writes.end(KEY, '8');
  expect(foreign).toEqual([KEY]);
});

it('tells what came during a look that wrote nothing', () => {
  writes.begin(KEY);
  writes.heard(KEY, '2');
  writes.end(KEY, undefined);
  expect(foreign).toEqual([KEY]);
});

it('takes a version for foreign that has no number, and one of another object of the name', () => {
  writes.begin(KEY);
  writes.end(KEY, '7');
  writes.forget(KEY);
  writes.heard(KEY, '7');
  writes.begin(KEY);
  writes.heard(KEY, undefined);
  writes.end(KEY, undefined);
  expect(foreign).toEqual([KEY, KEY]);
});
