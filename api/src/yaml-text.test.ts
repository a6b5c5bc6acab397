import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { yamlText } from './yaml-text.ts';

describe('yamlText', () => {
  it('writes block style, a string a line', () => {
    const data = {
      kind: 'WorkloadPolicy',
      metadata: { name: 'web', labels: {}, annotations: { 'a.b/c': 'true' } },
      spec: {
        paths: ['/usr/bin/id', '/bin/a b', '/bin/\\xff', '/bin/a: b'],
        none: [],
        pods: [{ name: 'web-1', count: 2 }, {}],
        left: undefined,
      },
      nested: [[1, [2]], []],
    };
    expect(yamlText(data)).toBe(`kind: WorkloadPolicy
metadata:
  name: web
  labels: {}
  annotations:
    a.b/c: "true"
spec:
  paths:
    - /usr/bin/id
    - /bin/a b
    - /bin/\\xff
    - "/bin/a: b"
  none: []
  pods:
    - name: web-1
      count: 2
    - {}
nested:
  -
    - 1
    -
      - 2
  - []
`);
  });

  it.each([
    ...['null', 'True', 'yes', 'NO', 'off', 'y', '', '~', '1', '-1', '1e3', '0x1f', '.5', '.inf', '.nan'],
    ...[
      '2026-11-30',
      '2026-11-30T04:00:00Z',
      '12:30',
      '- a',
      'a: b',
      'a #b',
      '#a',
      '&a',
      '*a',
      '!a',
      '|',
      '>',
      '%a',
    ],
    ...[
      '@a',
      '`a',
      '"a',
      "'a",
      '{a',
      '[a',
      '?',
      ' a',
      'a ',
      'a\nb',
      'a\tb',
      '\u0000',
      '\u0085',
      '\u00a0',
      '\u2028',
    ],
    ...['\ufeff', '\uffff', '\u007f', '---', '...', '<<', '=', 'é', '😀', '/a\\b'],
  ])('keeps %j a string for readers of YAML 1.1 and 1.2', (text) => {
    const written = yamlText({ key: text, [text]: 'value', list: [text] });
    for (const version of ['1.1', '1.2'] as const)
      expect(parse(written, { version, merge: false })).toEqual({ key: text, [text]: 'value', list: [text] });
  });

  it('is read back as what was written', () => {
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('tree'), { maxLength: 4 }), record(tie('tree'))),
    }));
    fc.assert(
      fc.property(record(tree), (data) => {
        for (const version of ['1.1', '1.2'] as const)
          expect(parse(yamlText(data), { version, merge: false })).toEqual(data);
      }),
      { seed: 20_261_130, numRuns: 2_000 },
    );
  });

  it.each([Number.NaN, Infinity, 1n, Symbol('a'), () => 1])('refuses what YAML has not', (value) => {
    expect(() => yamlText({ value })).toThrow(TypeError);
  });
});

const text = fc.string({ unit: 'binary', maxLength: 8 });
const scalar = fc.oneof(
  text,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
  fc.boolean(),
  fc.constant(null),
);

function record<T>(value: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> {
  // The reader makes plain objects, in which this one key is special.
  return fc.dictionary(
    text.filter((key) => key !== '__proto__'),
    value,
    { maxKeys: 4, noNullPrototype: true },
  );
}
