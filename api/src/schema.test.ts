import { describe, expect, it } from 'vitest';
import { formatFieldError } from './field-error.ts';
import { dnsLabel } from './kubernetes-name.ts';
import { flag, list, mapOf, object, oneOf, parseWith, text, wholeNumber, type Check } from './schema.ts';

const errors = (check: Check<unknown>, input: unknown) => {
  const parsed = parseWith(check, input);
  return parsed.ok ? [] : parsed.errors.map(formatFieldError);
};
const of3 = text({ max: 3 });

describe('schema', () => {
  it.each<[string, Check<unknown>, unknown]>([
    ['text of the longest length', of3, 'abc'],
    ['text counted in characters', of3, '😀😀😀'],
    ['the largest exact number', wholeNumber({ min: 0 }), Number.MAX_SAFE_INTEGER],
    ['a list of the longest length', list(of3, { max: 2 }), ['a', 'a']],
    ['an optional field that is undefined', object({}, { a: flag }), { a: undefined }],
  ])('accepts %s', (_, check, input) => {
    expect(errors(check, input)).toEqual([]);
  });

  it.each<[string, Check<unknown>, unknown, string]>([
    ['long text', of3, 'abcd', 'the text is longer than 3 characters; expected text of at most 3 characters'],
    ['long text of emoji', of3, '😀😀😀😀', 'the text is longer than 3 characters'],
    [
      'a fraction',
      wholeNumber({ min: 0 }),
      1.5,
      '1.5 is out of range; expected a whole number from 0 to 9007199254740991',
    ],
    ['an inexact number', wholeNumber({ min: 0 }), 2 ** 53, '9007199254740992 is out of range'],
    ['not a number', wholeNumber({ min: 0 }), NaN, 'NaN is out of range'],
    ['a number as text', wholeNumber({ min: 0 }), '1', 'the text "1" stands here'],
    ['an unknown word', oneOf(['a', 'b']), 'c', '"c" is not known; expected one of a, b'],
    [
      'a long list',
      list(of3, { max: 1 }),
      ['a', 'b'],
      'the list has 2 entries; expected a list of at most 1 entries',
    ],
    [
      'a repeated key',
      list(of3, { max: 3, key: (each) => each }),
      ['a', 'b', 'a'],
      '[2]: the entry repeats entry 0',
    ],
    ['a map for a list', list(of3, { max: 1 }), { 0: 'a' }, 'an object stands here; expected a list'],
    ['a list for a map', mapOf(dnsLabel, of3, { max: 1 }), ['a'], 'a list stands here; expected a map'],
    ['a full map', mapOf(dnsLabel, of3, { max: 1 }), { a: 'a', b: 'b' }, 'the map has 2 entries'],
    ['a bad key', mapOf(dnsLabel, of3, { max: 1 }), { A: 'a' }, 'A: "A" is not a DNS label'],
    ['an unknown field', object({}, { a: flag }), { b: 1 }, 'b: the field is unknown; expected one of a'],
    ['a missing field', object({ a: flag }, {}), {}, 'a: the field is missing; expected a value'],
    ['a function', flag, () => true, 'a value of type function stands here; expected true or false'],
    ['nothing', object({}, {}), null, 'nothing (null) stands here'],
  ])('refuses %s', (_, check, input, error) => {
    expect(errors(check, input)).toEqual([expect.stringContaining(error)]);
  });

  it('keeps __proto__ out of what it makes', () => {
    const input: unknown = JSON.parse('{"__proto__":{"a":true}}');
    expect(errors(object({}, { a: flag }), input)).toHaveLength(1);
    const map = parseWith(mapOf(text({ max: 20 }), object({}, { a: flag }), { max: 1 }), input);
    expect(map.ok && [...map.value]).toEqual([['__proto__', { a: true }]]);
  });

  it('reports at most fifty errors', () => {
    expect(errors(list(flag, { max: 1000 }), Array(1000).fill(1))).toHaveLength(50);
  });
});
