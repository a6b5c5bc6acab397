import { startMetrics } from '@runtime-enforcer/agent/metrics';
import { createCumulativeLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import { controllerMetrics } from '@runtime-enforcer/controller/metrics';
import { statusMetrics } from '@runtime-enforcer/controller/status/status-metrics';
import { observeCertificateEnds } from '@runtime-enforcer/telemetry/certificate-metric';

/** Everything that an agent can tell, each metric with a value, as Prometheus reads it. */
export async function agentMetricsText(): Promise<string> {
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
    return await metrics.text();
  } finally {
    metrics.stop();
  }
}

/** The same of a controller. */
export async function controllerMetricsText(): Promise<string> {
  const metrics = controllerMetrics({ isLeader: () => true, promotionDepth: () => 2 });
  const status = statusMetrics(metrics.registry, () => ({
    agents: { reporting: 3, silent: 1 },
    activeViolations: [['shop/web', 4]],
    ...{ unstored: 1, oldestUnstoredMs: 1_500, waitingPolicies: 2 },
  }));
  observeCertificateEnds(metrics.registry, { webhook: () => new Date(), agents: () => undefined });
  metrics.admission('/validate', 'allowed', 3);
  metrics.promotion('promoted', 20);
  metrics.promotion('error', 20);
  status.round(100);
  status.write('policy', 'written', 5);
  status.write('proposal', 'failed', 5);
  status.merged(7);
  status.refused('OtherNode', 2);
  return await metrics.registry.metrics();
}
