import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { shellQuote, shellScript } from './shell.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 30 }).filter((value) => !value.includes('\0'));

describe('shellScript', () => {
  it('hands every argument and variable over as it is', () => {
    const print = 'process.stdout.write(JSON.stringify([process.env.VALUE, ...process.argv.slice(1)]))';
    const nasty = [`it's`, '$(id) `id` "x" \\', '\n', '', '*', '-n'];
    const script = shellScript([process.execPath, '-e', print, '--', ...nasty], { VALUE: nasty.join('') });
    const stdout = execFileSync('sh', ['-c', script], { encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual([nasty.join(''), ...nasty]);
  });

  it('quotes any text', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (words) => {
        const script = `printf '%s\\0' ${words.map(shellQuote).join(' ')}`;
        expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe(
          words.map((word) => `${word}\0`).join(''),
        );
      }),
      { numRuns: 30 },
    );
  });

  it('refuses what a shell cannot hand over', () => {
    expect(() => shellScript(['true'], { 'A-B': '1' })).toThrow('"A-B"');
    expect(() => shellScript(['true', 'a\0b'], {})).toThrow(RangeError);
  });
});
