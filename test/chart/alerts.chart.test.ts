import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { promtoolBinary } from '../telemetry/promtool-binary.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { ALERT_CASES, type AlertCase, type SeriesValues } from './alert-cases.ts';
import { CHART, renderChart } from './render-chart.ts';

const ALERTS = join(CHART, 'files/alerts.yaml');

interface RuleFile {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly annotations: Readonly<Record<string, string>>;
    }[];
  }[];
}

let promtool: string;
let directory: string;
let alerts: readonly string[];
beforeAll(async () => {
  promtool = await promtoolBinary(printProgress);
  directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-alerts-'));
  alerts = alertsOf(parse(await readFile(ALERTS, 'utf8')) as RuleFile).map(({ alert }) => alert);
});
afterAll(async () => await rm(directory, { recursive: true }));

function alertsOf({ groups }: RuleFile): RuleFile['groups'][number]['rules'] {
  return groups.flatMap(({ rules }) => rules);
}

/** Promtool's own test of an alert with the series: how many of it fire. */
function testOf({ alert, atMinute }: AlertCase, series: SeriesValues, firing: number | undefined): object {
  return {
    interval: '1m',
    name: alert,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}", alertstate="firing"})`,
        eval_time: `${atMinute}m`,
        exp_samples: firing === undefined ? [] : [{ labels: '{}', value: firing }],
      },
    ],
  };
}

async function runTests(tests: readonly object[]): Promise<string> {
  const file = join(directory, `${Math.random().toString(36).slice(2)}.yaml`);
  await writeFile(file, stringify({ rule_files: [ALERTS], evaluation_interval: '1m', tests }));
  return await runHostCommand([promtool, 'test', 'rules', file]);
}

describe('the alerts', () => {
  it('are rules that Prometheus takes', async () => {
    expect(
      await runHostCommand([promtool, 'check', 'rules', '--lint=all', '--lint-fatal', ALERTS]),
    ).toContain(`${alerts.length} rules found`);
  });

  it('have each a case that fires', () => {
    expect(new Set(ALERT_CASES.map(({ alert }) => alert))).toEqual(new Set(alerts));
  });

  it.each(ALERT_CASES)('$alert fires when it should, and only then', async (each) => {
    await runTests([
      testOf(each, each.fires, 1),
      ...each.quiet.map((series) => testOf(each, series, undefined)),
    ]);
  });

  it('are tested by tests that can fail', async () => {
    const [each] = ALERT_CASES;
    if (each === undefined) throw new Error('there is no case');
    await expect(runTests([testOf(each, each.fires, undefined)])).rejects.toThrow();
    await expect(runTests([testOf(each, each.quiet[0] ?? {}, 1)])).rejects.toThrow();
  });

  it('stand in the PrometheusRule with the names of the release and the address of a runbook that is there', async () => {
    const runbooks = await readFile(join(REPOSITORY, 'docs/runbooks.md'), 'utf8');
    const headings = Array.from(runbooks.matchAll(/^## (\S+)$/gm), ([, heading]) => heading ?? '');
    expect(headings.toSorted()).toEqual(alerts.toSorted());
    const rendered = await renderChart({
      ...{ release: 'mine', namespace: 'safety' },
      values: { monitoring: { prometheusRule: { enabled: true }, runbookUrl: 'https://example.org/books' } },
    });
    const rule = rendered.find(({ object }) => object.kind === 'PrometheusRule')?.object;
    const rules = alertsOf(rule?.['spec'] as RuleFile);
    expect(rules.map(({ alert }) => alert)).toEqual(alerts);
    expect(JSON.stringify(rules)).not.toMatch(/AGENT-DAEMONSET|RELEASE-NAMESPACE/);
    expect(JSON.stringify(rules)).toContain('daemonset=\\"mine-runtime-enforcer-agent\\"');
    for (const { alert, annotations } of rules)
      expect(annotations['runbook_url']).toBe(`https://example.org/books#${alert.toLowerCase()}`);
  });
});
