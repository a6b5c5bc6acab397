import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldError, formatFieldError, formatFieldPath, quote } from './field-error.ts';

describe('quote', () => {
  it.each([
    ['web', '"web"'],
    ['', '""'],
    ['a"b', String.raw`"a\"b"`],
    ['a\nb', String.raw`"a\nb"`],
    ['\u001b[31m', String.raw`"\u001b[31m"`],
    ['a\u202eb', String.raw`"a\u{202e}b"`],
    ['\u007f', String.raw`"\u{7f}"`],
    ['\ud800', String.raw`"\ud800"`],
    ['x'.repeat(80), `"${'x'.repeat(80)}"`],
    ['x'.repeat(81), `"${'x'.repeat(80)}…"`],
    ['😀'.repeat(80), `"${'😀'.repeat(80)}"`],
    ['😀'.repeat(81), `"${'😀'.repeat(80)}…"`],
  ])('shows %j as %s', (text, shown) => {
    expect(quote(text)).toBe(shown);
  });

  it('is one short printable line for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        expect(quote(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect(quote(text).length).toBeLessThan(1000);
      }),
    );
  });
});

describe('formatFieldPath', () => {
  it.each([
    [[], ''],
    [['spec', 'mode'], 'spec.mode'],
    [['spec', 'rulesByContainer', 'side-car', 'allowed', 3], 'spec.rulesByContainer.side-car.allowed[3]'],
    [['metadata', 'labels', 'a.b/c'], 'metadata.labels["a.b/c"]'],
    [['x]\n', ''], String.raw`["x]\n"][""]`],
  ])('writes %j as %s', (segments, path) => {
    expect(formatFieldPath(segments)).toBe(path);
  });
});

describe('formatFieldError', () => {
  it('leaves out what is not there', () => {
    const text = { message: 'the field is missing', expected: 'a value' };
    expect(formatFieldError(fieldError([], text))).toBe('the field is missing; expected a value');
    expect(formatFieldError(fieldError(['spec', 'mode'], { ...text, remedy: 'add it' }))).toBe(
      'spec.mode: the field is missing; expected a value; add it',
    );
  });
});
