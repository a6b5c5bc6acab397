import { describe, expect, it } from 'vitest';
import { executableArgument } from './executable-argument.ts';
import { UsageError } from './plugin-error.ts';

describe('executableArgument', () => {
  it('takes a path as it is, and bytes that are not UTF-8 as they are written', () => {
    expect(executableArgument('/usr/bin/ls')).toBe('/usr/bin/ls');
    expect(executableArgument(String.raw`/opt/\xFF`)).toBe(String.raw`/opt/\xff`);
    expect(executableArgument('/opt/ü')).toBe('/opt/ü');
  });

  it.each([
    ['ls', 'does not start with "/"'],
    ['/opt/\uFFFD', 'holds bytes that are not UTF-8'],
    [String.raw`/opt/\xf`, String.raw`\x`],
  ])('refuses %j', (text, message) => {
    expect(() => executableArgument(text)).toThrow(UsageError);
    expect(() => executableArgument(text)).toThrow(message);
  });
});
