import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { labelSelectorOf, LabelSelectorError, matchesLabels } from './label-selector.ts';
import { formatLabelSelector, parseLabelSelector } from './label-selector-text.ts';

const labels = { app: 'web', tier: 'front', cpus: '8', empty: '' };

describe('parseLabelSelector and matchesLabels', () => {
  it.each<[string, boolean]>([
    ['', true],
    ['app=web', true],
    ['app==web', true],
    [' app = web , tier = front ', true],
    ['app=db', false],
    ['none=web', false],
    ['app!=db', true],
    ['app!=web', false],
    ['none!=web', true],
    ['app in (db,web)', true],
    ['app in (db)', false],
    ['none in (db)', false],
    ['app notin (db, cache)', true],
    ['app notin (web)', false],
    ['none notin (web)', true],
    ['app', true],
    ['none', false],
    ['!none', true],
    ['!app', false],
    ['empty=', true],
    ['app=', false],
    ['empty in (,x)', true],
    ['cpus>4', true],
    ['cpus>8', false],
    ['cpus<9', true],
    ['cpus<8', false],
    ['app>4', false],
    ['none<4', false],
    ['in in (in)', false],
    ['constructor', false],
    ['!constructor', true],
    ['a.b/c!=d,app=web', true],
  ])('%j: %s', (text, matches) => {
    expect(matchesLabels(parseLabelSelector(text), labels)).toBe(matches);
  });

  it.each([
    ['app=web,', 'a condition after ","'],
    [',app', 'a key'],
    ['app in web', '"(" after in'],
    ['app in (web', '"," or ")"'],
    ['app web', 'an operator'],
    ['app>x', '"x" is not a whole number'],
    ['app=a=b', '"," between'],
    ['a/b/c', 'not the key of a label'],
    ['app@x', 'unexpected "@"'],
    ['app=web-', 'no label has the value'],
    [`app=${'x'.repeat(64)}`, 'no label has the value'],
    ['x'.repeat(20_000), 'more than 10000 characters'],
    ['!', 'a key after "!"'],
  ])('%j is refused: %s', (text, message) => {
    expect(() => parseLabelSelector(text)).toThrow(LabelSelectorError);
    expect(() => parseLabelSelector(text)).toThrow(message);
  });

  it('never fails in another way, however odd the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[ab=!,()<>1 in]{0,12}$/)), (text) => {
        try {
          const selector = parseLabelSelector(text);
          expect(parseLabelSelector(formatLabelSelector(selector))).toEqual(selector);
        } catch (error) {
          expect(error).toBeInstanceOf(LabelSelectorError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('a selector without conditions takes objects without labels', () => {
    expect(matchesLabels([], undefined)).toBe(true);
    expect(matchesLabels(parseLabelSelector('!a'), undefined)).toBe(true);
    expect(matchesLabels(parseLabelSelector('a'), undefined)).toBe(false);
  });
});

describe('labelSelectorOf', () => {
  it('reads both forms of conditions', () => {
    const selector = labelSelectorOf({
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['front', 'back'] },
        { key: 'env', operator: 'NotIn', values: ['test'] },
        { key: 'tier', operator: 'Exists' },
        { key: 'legacy', operator: 'DoesNotExist', values: [] },
      ],
    });
    expect(formatLabelSelector(selector)).toBe('app=web,tier in (front,back),env notin (test),tier,!legacy');
    expect(matchesLabels(selector, labels)).toBe(true);
  });

  it.each([
    [null, 'expected an object'],
    [{ matchLabels: [] }, 'matchLabels must be an object'],
    [{ matchLabels: { a: 1 } }, 'each a text'],
    [{ matchLabels: { '-a': '1' } }, 'not the key'],
    [{ matchExpressions: {} }, 'matchExpressions must be a list'],
    [{ matchExpressions: [{}] }, 'needs a key'],
    [{ matchExpressions: [{ key: 'a', operator: 'in', values: ['b'] }] }, 'the operator must be'],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: [] }] }, 'a list of values'],
    [{ matchExpressions: [{ key: 'a', operator: 'In' }] }, 'a list of values'],
    [{ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }, 'takes no values'],
  ])('%j is refused: %s', (json, message) => {
    expect(() => labelSelectorOf(json)).toThrow(message);
  });
});
