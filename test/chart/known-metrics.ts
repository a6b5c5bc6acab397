import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startMetrics } from '@runtime-enforcer/agent/metrics';
import { createCumulativeLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import { controllerMetrics } from '@runtime-enforcer/controller/metrics';
import { statusMetrics } from '@runtime-enforcer/controller/status/status-metrics';
import { observeCertificateEnds } from '@runtime-enforcer/telemetry/certificate-metric';
import { parse } from 'yaml';
import { CHART } from './render-chart.ts';

/** Of kube-state-metrics, as its documentation names them. */
const CLUSTER_METRICS = ['kube_node_info', 'kube_pod_info', 'kube_daemonset_status_number_unavailable'];

interface CollectorConfiguration {
  readonly connectors: {
    readonly signal_to_metrics: { readonly logs: readonly { readonly name: string }[] };
  };
}

/** The names of every series that Prometheus can have of the product, and of what its alerts need besides. */
export async function knownMetrics(): Promise<ReadonlySet<string>> {
  const texts = await Promise.all([agentText(), controllerText()]);
  const configuration = parse(
    await readFile(join(CHART, 'files/otel-collector.yaml'), 'utf8'),
  ) as CollectorConfiguration;
  const counted = configuration.connectors.signal_to_metrics.logs.map(({ name }) => `${name}_total`);
  return new Set([...texts.flatMap(seriesOf), ...counted, ...CLUSTER_METRICS]);
}

function seriesOf(text: string): string[] {
  return Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = '', type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ).flat();
}

async function agentText(): Promise<string> {
  const metrics = startMetrics();
  try {
    const none = { records: 0, occurrences: 0 };
    metrics.observe({
      outcomes: () => Promise.resolve({ denied: 1n }),
      recursionMisses: () => 0n,
      attachment: { kind: 'lsm', programs: 'x', adopted: 'fresh', kernel: '6.12.0' },
      degraded: false,
      override: () => 'none',
      policies: () => new Map([['ready', 1]]),
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
    metrics.observeCertificate(() => undefined);
    return await metrics.text();
  } finally {
    metrics.stop();
  }
}

async function controllerText(): Promise<string> {
  const { registry } = controllerMetrics({ isLeader: () => true, promotionDepth: () => 0 });
  statusMetrics(registry, () => undefined);
  observeCertificateEnds(registry, { webhook: () => undefined });
  return await registry.metrics();
}
