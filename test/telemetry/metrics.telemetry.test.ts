import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { printProgress } from '../vm/progress.ts';
import { agentMetricsText, controllerMetricsText } from './metrics-texts.ts';
import { promtoolBinary } from './promtool-binary.ts';

/** What `promtool check metrics` says of a text; empty when it finds nothing. */
async function promtool(metrics: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(await promtoolBinary(printProgress), ['check', 'metrics'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(metrics);
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, output: `${output}${errors}` };
}

it.each([
  ['agent', agentMetricsText],
  ['controller', controllerMetricsText],
])("passes Prometheus' own check with everything that the %s tells", async (_, tell) => {
  const told = await tell();
  expect(told.split('\n').length).toBeGreaterThan(80);
  expect(await promtool(told)).toEqual({ code: 0, output: '' });
});

it('is a check that finds something', async () => {
  const bad = '# TYPE violations counter\nviolations{a="1"} 1\n';
  const { code, output } = await promtool(bad);
  expect(code).not.toBe(0);
  expect(output).toContain('violations');
});
