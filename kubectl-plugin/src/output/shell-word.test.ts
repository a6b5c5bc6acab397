import { execFileSync } from 'node:child_process';
import { assert, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shellWord } from './shell-word.ts';

describe('shellWord', () => {
  it('leaves plain words alone', () => {
    for (const word of ['/usr/bin/ls', 'deploy-web', 'a.b_c=d:1']) expect(shellWord(word)).toBe(word);
  });

  it('is read by a shell as the text that it was', () => {
    const read = (word: string): string => execFileSync('/bin/sh', ['-c', `printf %s ${word}`]).toString();
    for (const text of ['', String.raw`/opt/\xff`, "it's", '$(id)', 'a b', '`id`', '*', '~', '-n', '#', "'"])
      expect(read(shellWord(text))).toBe(text);
    assert(
      property(string({ unit: 'grapheme', maxLength: 20 }), (text) => {
        if (!text.includes('\0')) expect(read(shellWord(text))).toBe(text);
      }),
      { numRuns: 50 },
    );
  });
});
