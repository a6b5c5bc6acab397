import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  displayExecutable,
  executablePathBytes,
  executablePathFromBytes,
  parseExecutablePath,
} from './executable-path.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

function refusalOf(text: string): string {
  const parsed = parseExecutablePath(text);
  if (parsed.ok) throw new Error(`accepted as ${parsed.value}`);
  const [error, ...others] = parsed.errors;
  expect(others).toEqual([]);
  return `${error?.message}; ${error?.remedy ?? error?.expected}`;
}

describe('parseExecutablePath', () => {
  it.each([
    ['/a', '/a'],
    ['/usr/bin/ls', '/usr/bin/ls'],
    ['/opt/my app/run', '/opt/my app/run'],
    ['/opt/…/naïve/日本/😀', '/opt/…/naïve/日本/😀'],
    ['/a.b/..c/...', '/a.b/..c/...'],
    [String.raw`/a\\b`, String.raw`/a\\b`],
    [String.raw`/a\xff\x07`, String.raw`/a\xff\x07`],
    [String.raw`/a\xFF`, String.raw`/a\xff`],
    [String.raw`/na\xc3\xafve`, '/naïve'],
    ['/srv/memfd:x', '/srv/memfd:x'],
    ['/srv (deleted)/x', '/srv (deleted)/x'],
    [`/${'a'.repeat(4094)}`, `/${'a'.repeat(4094)}`],
    [`/${String.raw`\xff`.repeat(4094)}`, `/${String.raw`\xff`.repeat(4094)}`],
  ])('reads %j', (text, canonical) => {
    expect(parseExecutablePath(text)).toEqual({ ok: true, value: canonical });
  });

  it.each([
    ['', 'the path is empty; write the full path from the root of the container, such as /usr/bin/ls'],
    ['usr/bin/ls', '"usr/bin/ls" does not start with "/"; write the full path from the root'],
    [' /usr/bin/ls', '" /usr/bin/ls" does not start with "/"'],
    ['/', '"/" is a directory; name one executable'],
    ['/usr/bin/', '"/usr/bin/" ends with "/"'],
    ['/usr//bin', '"/usr//bin" holds "//"; write one "/"'],
    ['/usr/./ls', '"/usr/./ls" holds the component "."'],
    ['/usr/..', '"/usr/.." holds the component ".."; write the path as realpath prints it'],
    ['/memfd:x', '"/memfd:x" is a file that exists only in memory; remove it'],
    ['/tmp/x (deleted)', '"/tmp/x (deleted)" is a file that was deleted; remove it'],
    ['/a\\', '"\\\\" is not an escape; write a backslash as \\\\'],
    ['/a\\n', '"\\\\n" is not an escape'],
    [String.raw`/a\x4`, 'is not an escape'],
    [String.raw`/a\x00`, 'the path holds a NUL byte'],
    [String.raw`/a\x2fb`, 'stands for the printable character "/"; write "/" itself'],
    [String.raw`/a\x5cb`, String.raw`write \\ itself`],
    ['/a\nb', String.raw`the path holds the unprintable character "\n"; write it as \x0a`],
    ['/a\u202eb', String.raw`unprintable character "\u{202e}"; write it as \xe2\x80\xae`],
    ['/a\u00a0b', String.raw`write it as \xc2\xa0`],
    ['/a\ud800b', String.raw`unprintable character "\ud800"; write its bytes as \xHH`],
    [`/${'a'.repeat(4095)}`, 'the path has 4096 bytes, 1 too many; an absolute path of 2 to 4,095 bytes'],
    [`/${'é'.repeat(2048)}`, 'the path has 4097 bytes, 2 too many'],
    ['/'.padEnd(20_000, 'a'), 'the path is written in 20000 characters'],
  ])('refuses %j', (text, words) => {
    expect(refusalOf(text)).toContain(words);
  });

  it('says where the text stands', () => {
    expect(parseExecutablePath('x', ['spec', 'allowed', 3])).toMatchObject({
      errors: [{ path: 'spec.allowed[3]', segments: ['spec', 'allowed', 3] }],
    });
  });

  it('answers any text at all', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 50 }), (text) => {
        const parsed = parseExecutablePath(`/${text}`);
        if (!parsed.ok) return;
        expect(parseExecutablePath(parsed.value)).toEqual(parsed);
        expect(executablePathFromBytes(executablePathBytes(parsed.value))).toEqual(parsed);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('executablePathFromBytes', () => {
  it.each([
    [latin1('/a\xff'), String.raw`/a\xff`],
    [latin1('/\xe2\x80'), String.raw`/\xe2\x80`],
    [latin1('/\xc3A'), String.raw`/\xc3A`],
    [latin1('/\xc0\xaf'), String.raw`/\xc0\xaf`],
    [latin1('/\xed\xa0\x80'), String.raw`/\xed\xa0\x80`],
    [latin1('/\xef\xbf\xbd'), '/\ufffd'],
    [latin1('/\xef\xbf\xbd\xff'), String.raw`/${'\ufffd'}\xff`],
    [latin1('/\xf0\x9f\x98'), String.raw`/\xf0\x9f\x98`],
    [bytes('/\ufeffa'), String.raw`/\xef\xbb\xbfa`],
    [bytes('/a\u200bb'), String.raw`/a\xe2\x80\x8bb`],
    [bytes('/a\\b'), String.raw`/a\\b`],
    [bytes('/a\x7f'), String.raw`/a\x7f`],
  ])('writes %j as %j', (input, text) => {
    expect(executablePathFromBytes(input)).toEqual({ ok: true, value: text });
  });

  it('is reversible for any bytes, and equal texts are equal bytes', () => {
    const byte = fc.oneof(
      fc.integer({ min: 1, max: 255 }),
      fc.constantFrom(0x2f, 0x5c, 0x78, 0xc3, 0xe2, 0x80),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.array(byte, { maxLength: 60 }), (any, path) => {
        for (const tail of [any, path]) {
          const input = Uint8Array.from([0x2f, ...tail]);
          const parsed = executablePathFromBytes(input);
          if (!parsed.ok) continue;
          expect(executablePathBytes(parsed.value)).toEqual(input);
          expect(parseExecutablePath(parsed.value)).toEqual(parsed);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps to 4,095 bytes and knows no NUL', () => {
    expect(executablePathFromBytes(bytes(`/${'a'.repeat(4094)}`)).ok).toBe(true);
    expect(executablePathFromBytes(bytes(`/${'a'.repeat(4095)}`))).toMatchObject({ ok: false });
    expect(executablePathFromBytes(bytes('/a\0b'))).toMatchObject({ ok: false });
    expect(executablePathFromBytes(new Uint8Array())).toMatchObject({ ok: false });
  });
});

describe('displayExecutable', () => {
  it.each([
    ['/usr/bin/ls', 'file', '/usr/bin/ls'],
    ['/tmp/x', 'deleted', '/tmp/x (deleted)'],
    ['payload', 'memfd', '/memfd:payload'],
    ['/memfd:payload', 'memfd', '/memfd:payload'],
    ['', 'memfd', '/memfd:'],
    ['/tmp/\u001b[2J', 'deleted', String.raw`/tmp/\x1b[2J (deleted)`],
  ] as const)('shows %j of kind %s as %j', (path, kind, shown) => {
    expect(displayExecutable(bytes(path), kind)).toBe(shown);
  });

  it('shows what can never be on a list as what no list accepts', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.constantFrom('deleted' as const, 'memfd' as const),
        (path, kind) => {
          expect(parseExecutablePath(displayExecutable(path, kind)).ok).toBe(false);
        },
      ),
    );
  });
});
