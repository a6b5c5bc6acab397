import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressOf, durationMsOf, type FlagSpec, flagsHelp, readFlags, UsageError } from './program-flags.ts';

const FLAGS = {
  output: { value: 'text|json', short: 'o', help: 'how to print', default: 'text' },
  once: { help: 'only once', default: 'false' },
} as const satisfies Record<string, FlagSpec>;

describe('flags', () => {
  it.each([
    [['-o', 'json'], 'json'],
    [['-ojson'], 'json'],
    [['--output=json'], 'json'],
    [['--output', 'json', '-o', 'text'], 'text'],
    [[], 'text'],
  ])('read %j', (args, output) => expect(readFlags(args, FLAGS).get('output')).toBe(output));

  it('have a help that names both forms', () => {
    expect(flagsHelp(FLAGS)).toContain('-o, --output=text|json\n      how to print (default text)');
  });

  it('end in an answer or a usage error, whatever is given', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.string(),
            fc.constantFrom(...Object.keys(FLAGS).map((name) => `--${name}`), '-o', '-ojson', '-o='),
          ),
        ),
        (args) => {
          try {
            readFlags(args, FLAGS);
          } catch (error) {
            expect(error).toBeInstanceOf(UsageError);
          }
        },
      ),
    );
  });

  it.each([
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
  ])('reads the time %s', (text, ms) => expect(durationMsOf('x', text)).toBe(ms));

  it.each(['', '30', 's', '1d', '0s', '1s ', '9999h', '1e3s'])('reads no time %j', (text) =>
    expect(() => durationMsOf('x', text)).toThrow(UsageError),
  );

  it.each([
    [':80', { host: '', port: 80 }],
    ['[::1]:80', { host: '::1', port: 80 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['0', undefined],
  ])('reads the address %s', (text, address) => expect(addressOf('x', text)).toEqual(address));
});
