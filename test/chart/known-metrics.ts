import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { agentMetricsText, controllerMetricsText } from '../telemetry/metrics-texts.ts';
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
  const texts = await Promise.all([agentMetricsText(), controllerMetricsText()]);
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
