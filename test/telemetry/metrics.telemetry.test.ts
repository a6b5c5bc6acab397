import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { startMetrics } from '@runtime-enforcer/agent/metrics';
import { createCumulativeLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import { controllerMetrics } from '@runtime-enforcer/controller/metrics';
import { statusMetrics } from '@runtime-enforcer/controller/status/status-metrics';
import { expect, it } from 'vitest';
import { printProgress } from '../vm/progress.ts';
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

it("passes Prometheus' own check with everything that the agent tells", async () => {
  const metrics = startMetrics();
  try {
    const none = { records: 0, occurrences: 0 };
    metrics.observe({
      outcomes: () => Promise.resolve({ denied: 3n, violation_ring_full: 1n }),
      recursionMisses: () => 7n,
      attachment: { kind: 'lsm', programs: 'check_lsm', adopted: 'fresh', kernel: '6.12.0' },
      degraded: false,
      override: () => 'none',
      policies: () => new Map([['ready', 2]]),
      containers: () => new Map([['enforced', 1]]),
      nriConnected: () => true,
      attached: () => true,
    });
    metrics.observeReports({
      logs: { violations: createCumulativeLog({ incarnation: 'x' }) },
      journal: { bytes: 1, waiting: 0 },
      export: {
        waiting: 0,
        counts: () => ({
          ...{ exported: none, failures: 0 },
          lost: { queue_full: none, refused: none, unconfirmed: none, stopped: none },
        }),
      },
    });
    metrics.observeCertificate(() => new Date());
    metrics.failures('reconcile');
    metrics.nri.increment('requests', 'StartContainer');
    metrics.nri.answered?.('StartContainer', 0.001);
    const told = await metrics.text();
    expect(told.split('\n').length).toBeGreaterThan(100);
    expect(await promtool(told)).toEqual({ code: 0, output: '' });
  } finally {
    metrics.stop();
  }
});

it('passes it with everything that the controller tells', async () => {
  const metrics = controllerMetrics({ isLeader: () => true, promotionDepth: () => 2 });
  const status = statusMetrics(metrics.registry, () => ({
    agents: { reporting: 3, silent: 1 },
    activeViolations: [['shop/web', 4]],
    ...{ unstored: 1, oldestUnstoredMs: 1_500, waitingPolicies: 2 },
  }));
  metrics.admission('/validate', 'allowed', 3);
  metrics.promotion('promoted', 20);
  metrics.promotion('error', 20);
  status.round(100);
  status.write('policy', 'written', 5);
  status.write('proposal', 'failed', 5);
  status.merged(7);
  status.refused('OtherNode', 2);
  const told = await metrics.registry.metrics();
  expect(told.split('\n').length).toBeGreaterThan(80);
  expect(await promtool(told)).toEqual({ code: 0, output: '' });
});

it('is a check that finds something', async () => {
  const bad = '# TYPE violations counter\nviolations{a="1"} 1\n';
  const { code, output } = await promtool(bad);
  expect(code).not.toBe(0);
  expect(output).toContain('violations');
});
