import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { promtoolBinary } from '../telemetry/promtool-binary.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { knownMetrics } from './known-metrics.ts';
import { CHART, renderChart } from './render-chart.ts';

const METRIC = /\b(?:runtime_enforcer|kube|container|up)(?:_\w+)?\b(?=[{[\s)]|$)/g;

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly description?: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
}

async function dashboardQueries(): Promise<string[]> {
  const { panels } = JSON.parse(await readFile(join(CHART, 'files/dashboard.json'), 'utf8')) as Dashboard;
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

async function alertQueries(): Promise<string[]> {
  const { groups } = parse(await readFile(join(CHART, 'files/alerts.yaml'), 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[];
  };
  return groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
}

it.each([
  ['the dashboard', dashboardQueries, 20],
  ['the alerts', alertQueries, 15],
] as const)('%s asks for series that there are', async (_, queries, least) => {
  const known = await knownMetrics();
  const asked = await queries();
  expect(asked.length).toBeGreaterThan(least);
  for (const query of asked) {
    const names = query.match(METRIC) ?? [];
    expect(names.length, query).toBeGreaterThan(0);
    for (const name of names) expect([...known], query).toContain(name);
  }
});

it('every query of the dashboard is one that Prometheus understands', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-queries-'));
  try {
    const file = join(directory, 'rules.yaml');
    const queries = await dashboardQueries();
    const rules = queries.map((expr, index) => ({
      record: `query:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }));
    await writeFile(file, stringify({ groups: [{ name: 'dashboard', rules }] }));
    const promtool = await promtoolBinary(printProgress);
    expect(await runHostCommand([promtool, 'check', 'rules', file])).toContain(
      `${queries.length} rules found`,
    );
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('the dashboard stands in its ConfigMap as it is in the file', async () => {
  const rendered = await renderChart({
    values: { monitoring: { dashboard: { enabled: true, annotations: { folder: 'security' } } } },
  });
  const map = rendered.find(({ object }) => object.metadata.name === 'runtime-enforcer-dashboard')?.object;
  const { 'runtime-enforcer.json': text = '' } = map?.['data'] as Record<string, string>;
  expect(JSON.parse(text)).toEqual(JSON.parse(await readFile(join(CHART, 'files/dashboard.json'), 'utf8')));
  expect(map?.metadata).toMatchObject({
    labels: { grafana_dashboard: '1' },
    annotations: { folder: 'security' },
  });
});
