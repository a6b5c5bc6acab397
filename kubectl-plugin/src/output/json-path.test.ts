import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../plugin-error.ts';
import { fillJsonPath } from './json-path.ts';

const DATA = {
  kind: 'List',
  items: [
    {
      metadata: { name: 'web', labels: { 'app.kubernetes.io/name': 'shop', 'a b': 'c' } },
      status: { count: 3, ready: true, conditions: [{ type: 'Ready', status: 'True' }] },
    },
    { metadata: { name: 'db' }, status: { count: 10, conditions: [{ type: 'Ready', status: 'False' }] } },
  ],
};

const fill = (template: string, data: unknown = DATA) => fillJsonPath(template, data, escapeUnprintable);

describe('fillJsonPath', () => {
  // Expected values as kubectl 1.36 prints them for the same data.
  it.each([
    ['{.kind}', 'List'],
    ['.kind', 'List'],
    ['kind', 'List'],
    ['{.items[*].metadata.name}', 'web db'],
    ['{.items[0].metadata.name}', 'web'],
    ['{.items[-1:].metadata.name}', 'db'],
    ['{.items[0:1].metadata.name}', 'web'],
    ["{.items[0]['metadata']['name']}", 'web'],
    [String.raw`{.items[0].metadata.labels.app\.kubernetes\.io/name}`, 'shop'],
    ["{.items[0].metadata.labels['a b']}", 'c'],
    [String.raw`{range .items[*]}{.metadata.name}{"\t"}{.status.count}{"\n"}{end}`, 'web\t3\ndb\t10\n'],
    ['{.items[?(@.metadata.name=="db")].status.count}', '10'],
    ['{.items[?(@.status.count>5)].metadata.name}', 'db'],
    ['{.items[?(@.status.ready==true)].metadata.name}', 'web'],
    ['{.items[?(@.status.ready)].metadata.name}', 'web'],
    ['{.items[0].status.conditions[?(@.type=="Ready")].status}', 'True'],
    ['{..name}', 'web db'],
    ['{.items[0].status.conditions}', '[{"type":"Ready","status":"True"}]'],
    ['{.missing}', ''],
    ['count: {.items[1].status.count}!', 'count: 10!'],
    ['{"a}b"}', 'a}b'],
    ['{@.kind}', 'List'],
  ])('%s', (template, expected) => {
    expect(fill(template)).toBe(expected);
  });

  it.each(['{.a', '{end}', '{range .items[*]}', '{.items[}', '{.items[x]}', '{.a b}', '{.items[?(x)]}'])(
    'refuses %s in words',
    (template) => {
      expect(() => fill(template)).toThrow(UsageError);
    },
  );

  it('reaches no member that the data has not, and lets no escape through', () => {
    expect(fill('{.constructor.name}{.items.length}{.__proto__}')).toBe('');
    expect(fill('{.a}', { a: '\u001b]52;c;eA==\u0007' })).not.toMatch(/\p{Cc}/u);
  });

  it('answers or refuses any template, quickly', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '.',
      '[',
      ']',
      '*',
      '?(@',
      ')',
      '"',
      "'",
      'a',
      '..',
      '0',
      ':',
      '==',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        try {
          fill(pieces.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
