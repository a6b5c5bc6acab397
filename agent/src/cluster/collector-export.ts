import { join } from 'node:path';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { openCollectorTls } from '@runtime-enforcer/telemetry/collector-tls';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { createLogExport, type LogExport } from '@runtime-enforcer/telemetry/log-export';
import type { OtlpOptions } from '@runtime-enforcer/telemetry/otlp-options';
import { tlsFromStore, type TlsSource } from '@runtime-enforcer/telemetry/tls-source';
import type { ClusterOptions } from '../commands/cluster-options.ts';
import { CommandError } from '../commands/command-error.ts';
import type { RunContext } from '../commands/run-context.ts';
import { AGENT_VERSION } from '../version.ts';
import { VIOLATION_SCOPE } from '../violations/violation-export.ts';

const EXPORT_STOP_MS = 700;
const TLS_STOP_MS = 200;

/** Opens the way of violations to a collector. Rejects with a {@link CommandError} that names the option. */
export async function openExport(
  context: RunContext,
  cluster: ClusterOptions,
  otlp: OtlpOptions,
  certificates: CertificateStore | undefined,
): Promise<LogExport> {
  const { options, log, stops } = context;
  // The product's own collector knows the product's authority, and takes records from whoever has its certificates.
  const isOwn =
    cluster.grpcCertificateDirectory !== undefined &&
    otlp.caFile === join(cluster.grpcCertificateDirectory, 'ca.crt') &&
    otlp.clientCertificateFile === undefined;
  const tls = isOwn && certificates !== undefined ? tlsFromStore(certificates) : await tlsFor(context, otlp);
  try {
    const exporter = createLogExport({
      target: { protocol: otlp.protocol, endpoint: otlp.endpoint, ...(tls && { tls }) },
      scope: VIOLATION_SCOPE,
      resource: {
        'service.name': 'runtime-enforcer-agent',
        'service.version': AGENT_VERSION,
        'k8s.node.name': options.nodeName,
      },
      log,
    });
    stops.add('export', EXPORT_STOP_MS, () => exporter.stop(EXPORT_STOP_MS));
    return exporter;
  } catch (cause) {
    throw new CommandError(`--otlp-endpoint: ${describeError(cause)}`, { cause });
  }
}

async function tlsFor({ log, stops }: RunContext, otlp: OtlpOptions): Promise<TlsSource | undefined> {
  const tls = await openCollectorTls(otlp, log).catch((cause: unknown) => {
    throw new CommandError(describeError(cause), { cause });
  });
  if (tls !== undefined) {
    stops.add('certificates of the collector', TLS_STOP_MS, () => {
      tls.stop();
      return Promise.resolve();
    });
  }
  return tls;
}
