import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isJsonObject } from '@runtime-enforcer/kube/kube-object';
import { Ajv } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { chartReadme } from './chart-readme.ts';
import { helmBinary } from './helm-binary.ts';
import { CHART, renderChart } from './render-chart.ts';
import { VALUE_CASES } from './value-cases.ts';

/** Values without an effect of their own, and those whose effect another test shows. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set([
  'global',
  'monitoring.runbookUrl',
  'monitoring.dashboard.enabled',
  'monitoring.dashboard.labels',
  'monitoring.dashboard.annotations',
]);

interface SchemaNode {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly $ref?: string;
}

interface Schema extends SchemaNode {
  readonly $defs: Readonly<Record<string, SchemaNode>>;
}

let schema: Schema;
let values: Record<string, unknown>;
beforeAll(async () => {
  schema = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8')) as Schema;
  values = parse(await readFile(join(CHART, 'values.yaml'), 'utf8')) as Record<string, unknown>;
});

/** Every group of values, by its path. */
function* groups(
  node: SchemaNode,
  path: readonly string[],
): Generator<readonly [readonly string[], SchemaNode]> {
  if (node.properties === undefined) return;
  yield [path, node];
  for (const [key, property] of Object.entries(node.properties)) yield* groups(property, [...path, key]);
}

/** A copy of the values with one more key at a path. */
function withUnknownKey(path: readonly string[]): object {
  const copy = structuredClone(values);
  let place = copy;
  for (const key of path) {
    const next = place[key];
    const inner = isJsonObject(next) ? next : {};
    place[key] = inner;
    place = inner;
  }
  place['unknownKey'] = 'x';
  return copy;
}

describe('values.schema.json', () => {
  it('takes the values of the chart, and refuses an unknown key at every level', () => {
    const judge = new Ajv({ strict: false, allErrors: true }).compile(schema);
    expect(judge(values), JSON.stringify(judge.errors)).toBe(true);
    const paths = [...groups(schema, [])].map(([path]) => path);
    expect(paths.length).toBeGreaterThan(25);
    for (const path of paths) expect(judge(withUnknownKey(path)), path.join('.')).toBe(false);
    for (const context of ['podSecurityContext', 'containerSecurityContext', 'affinity', 'resources'])
      expect(judge(withUnknownKey(['agent', context])), context).toBe(false);
  });

  it('is what helm holds the values against', async () => {
    await expect(renderChart({ values: { agent: { unknownKey: 1 } } })).rejects.toThrow(/unknownKey/);
    await expect(renderChart({ values: { telemetry: { unknownKey: 1 } } })).rejects.toThrow(/unknownKey/);
  });

  it('says of every value what it means, and knows every value that there is', () => {
    for (const [path, node] of groups(schema, []))
      for (const [key, property] of Object.entries(node.properties ?? {}))
        expect(property.description?.length ?? 0, [...path, key].join('.')).toBeGreaterThan(5);
    for (const [path, node] of groups(schema, [])) {
      const known = Object.keys(node.properties ?? {});
      const given = path.reduce<unknown>(
        (place, key) => (isJsonObject(place) ? place[key] : undefined),
        values,
      );
      for (const key of isJsonObject(given) ? Object.keys(given) : []) expect(known).toContain(key);
    }
  });
});

it('every value has a case that shows what it changes', () => {
  const cases = VALUE_CASES.flatMap(([name]) =>
    name.split(' and ').map((each) => each.split(/:|,| by /)[0] ?? ''),
  );
  const leaves = [...groups(schema, [])].flatMap(([path, node]) =>
    Object.entries(node.properties ?? {}).flatMap(([key, property]) =>
      property.properties === undefined ? [[...path, key].join('.')] : [],
    ),
  );
  const isShown = (leaf: string): boolean =>
    cases.some((name) => leaf === name || leaf.startsWith(`${name}.`)) || SHOWN_ELSEWHERE.has(leaf);
  expect(leaves.filter((leaf) => !isShown(leaf))).toEqual([]);
});

describe('the chart', () => {
  it('is found faultless by helm lint', async () => {
    const helm = await helmBinary(printProgress);
    for (const kube of ['1.31.14', '1.34.4', '1.36.3']) {
      const told = await runHostCommand([helm, 'lint', '--strict', '--kube-version', kube, CHART]);
      expect(told).toContain('0 chart(s) failed');
    }
  });

  it('has a README that tells the values as they are', async () => {
    const squeezed = (text: string): string => text.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---');
    const written = await readFile(join(CHART, 'README.md'), 'utf8');
    expect(squeezed(written), 'run npm run chart:readme').toBe(squeezed(await chartReadme()));
  });

  it('has the version of the programs', async () => {
    const chart = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8')) as { readonly appVersion: string };
    const program = JSON.parse(await readFile(join(CHART, '../../package.json'), 'utf8')) as {
      readonly version: string;
    };
    expect(chart.appVersion).toBe(program.version);
  });
});
