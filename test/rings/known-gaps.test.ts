import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REPOSITORY } from '../vm/repository.ts';

const TITLE = 'known gap: ';
const GUIDE = readFileSync(join(REPOSITORY, 'docs/known-gaps.md'), 'utf8');
const TESTS = globSync('{agent,api,kube,rpc,test}/**/*.test.ts', {
  cwd: REPOSITORY,
  exclude: (path) => /(^|\/)(node_modules|build|dist)(\/|$)/.test(path),
}).map((file) => readFileSync(join(REPOSITORY, file), 'utf8'));

/** Titles of tests that show a gap, without the numbers in front. */
const SHOWN = TESTS.flatMap((text) =>
  Array.from(
    text.matchAll(/\b(?:it|test)\(\s*['"`](?:field [\d, ]+: )?(known gap: .*?)['"`],/g),
    ([, title = '']) => title,
  ),
);
/** Beginnings of such titles in the guide: "…" says that there is more. */
const TOLD = Array.from(
  GUIDE.matchAll(/"(?:field [\d, ]+: )?(known gap: [^"]+?)(?: ?…)?"/g),
  ([, title = '']) => title,
);

describe('docs/known-gaps.md', () => {
  it('names tests that there are', () => {
    expect(TOLD.length).toBeGreaterThan(5);
    for (const title of TOLD)
      expect(
        SHOWN.some((shown) => shown.startsWith(title)),
        title,
      ).toBe(true);
  });

  it('tells of every gap that a test shows', () => {
    expect(SHOWN.length).toBeGreaterThan(5);
    const untold = SHOWN.filter((shown) => !TOLD.some((title) => shown.startsWith(title)));
    expect(untold.map((title) => title.slice(TITLE.length))).toEqual([]);
  });
});
