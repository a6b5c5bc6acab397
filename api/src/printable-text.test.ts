import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeInQuotes, escapeUnprintable } from './printable-text.ts';
import { readYaml } from './yaml-document.ts';
import { yamlText } from './yaml-text.ts';

const HOSTILE = [
  '\u001b]52;c;ZWNobw==\u0007',
  '\u009b2J',
  '\u202egpj.exe',
  '\u2066',
  '\u200b',
  '\u{e0041}',
  '\r',
];
const RAW = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

describe('escapeUnprintable', () => {
  it.each(HOSTILE)('leaves nothing of %j that a terminal acts on', (text) => {
    expect(escapeUnprintable(`a${text}b`)).not.toMatch(RAW);
  });

  it('keeps what can be read', () => {
    expect(escapeUnprintable('/usr/bin/é日😀 x')).toBe('/usr/bin/é日😀 x');
    expect(escapeUnprintable('a\u001bb')).toBe(String.raw`a\u{1b}b`);
  });
});

describe('escapeInQuotes', () => {
  it('says the same in JSON and in YAML as before', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(...HOSTILE))), (texts) => {
        const json = escapeInQuotes(JSON.stringify({ texts }, null, 2));
        expect(json.replaceAll('\n', '')).not.toMatch(RAW);
        expect(JSON.parse(json)).toEqual({ texts });
      }),
    );
  });

  it.each(HOSTILE.filter((text) => !text.includes('\u{e0041}')))('keeps YAML with %j readable', (text) => {
    const yaml = escapeInQuotes(yamlText({ text }));
    expect(yaml.trimEnd()).not.toMatch(RAW);
    const read = readYaml(new TextEncoder().encode(yaml));
    expect(read.ok && read.documents[0]?.data).toEqual({ text });
  });
});
