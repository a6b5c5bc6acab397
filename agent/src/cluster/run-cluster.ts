import { join } from 'node:path';
import { certificateStore, type CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { createHealthEndpoint } from '@runtime-enforcer/telemetry/health-endpoint';
import { createLogExport, type LogExport } from '@runtime-enforcer/telemetry/log-export';
import { tlsFromFiles, tlsFromStore, type TlsSource } from '@runtime-enforcer/telemetry/tls-source';
import type { ClusterOptions, OtlpOptions } from '../commands/cluster-options.ts';
import { CommandError } from '../commands/command-error.ts';
import { startTelling, type RunContext } from '../commands/run-context.ts';
import { openKernelSide } from '../node/kernel-side.ts';
import { ownDirectory } from '../node/own-directory.ts';
import {
  createObserverServer,
  type ObserverServer,
  type ObserverSources,
} from '../server/observer-server.ts';
import { AGENT_VERSION } from '../version.ts';
import { openLogJournal } from '../violations/log-journal.ts';
import { asNodeViolation, type NodeViolation } from '../violations/node-violation.ts';
import { VIOLATION_SCOPE, violationEvent } from '../violations/violation-export.ts';
import { createClusterAgent } from './cluster-agent.ts';
import { openClusterClient } from './cluster-client.ts';
import { createOwnDaemonSet, type OwnDaemonSet } from './daemon-set.ts';
import { createNodeHealth } from './node-health.ts';

/** How long each part of an orderly stop may take; all together less than 10 s. */
const SERVER_STOP_MS = 200;
const CLIENT_STOP_MS = 300;
const OBSERVER_STOP_MS = 2_300;
const AGENT_STOP_MS = 2_000;
const EXPORT_STOP_MS = 700;
const JOURNAL_STOP_MS = 500;
const KERNEL_STOP_MS = 2_000;
/** How long the API server may take to say whether this agent will have a successor. */
const DAEMON_SET_ANSWER_MS = 1_000;
const ALL_ADDRESSES = '0.0.0.0';

/**
 * Starts an agent of a cluster. Probes are answered first; then it waits for the agent before to end, takes over what
 * that has left in the kernel and in the journal, and only then listens to the API server and the runtime. Rejects if
 * it cannot; what was started is in `stops`.
 */
export async function startCluster(context: RunContext, cluster: ClusterOptions): Promise<void> {
  const { options, log, metrics, stops, termination } = context;
  const { counters, failures } = metrics;
  const journalDirectory = cluster.journalDirectory ?? join(options.stateDirectory, 'journal');
  await ownDirectory(journalDirectory, '--journal-dir', 0o700);
  const api = openClusterClient(cluster.kubeconfig);
  const { client } = api;
  stops.add('API client', CLIENT_STOP_MS, () => api.close());
  const certificates = await openCertificates(context, cluster);
  const exporter =
    cluster.otlp === undefined ? undefined : await openExport(context, cluster, cluster.otlp, certificates);

  const health = createNodeHealth();
  if (cluster.healthAddress !== undefined) {
    const { host, port } = cluster.healthAddress;
    const endpoint = createHealthEndpoint(cluster.healthAddress, health);
    try {
      await endpoint.start();
    } catch (cause) {
      const address = `--health-probe-bind-address ${host}:${port}`;
      throw new CommandError(`cannot answer probes at ${address}: ${describeError(cause)}`, { cause });
    }
    stops.add('probes', SERVER_STOP_MS, () => endpoint.stop());
  }

  const daemonSet = cluster.ownPod && createOwnDaemonSet({ client, ownPod: cluster.ownPod, log, failures });
  if (daemonSet !== undefined) {
    daemonSet.start();
    stops.add('own DaemonSet', CLIENT_STOP_MS, () => daemonSet.stop());
  }
  const kernel = await openKernelSide({
    ...{ options, log, failures, signal: termination },
    onWait: (sentence) => (health.subjects.standby = sentence),
  });
  health.subjects.standby = undefined;
  stops.add('kernel', KERNEL_STOP_MS, async () => {
    const release = termination.aborted && (await isToRelease(context, daemonSet));
    await kernel.close({ release });
  });

  const journal = await openLogJournal<NodeViolation>({
    ...{ directory: journalDirectory, name: 'violations', asValue: asNodeViolation, log, counters },
  });
  stops.add('journal', JOURNAL_STOP_MS, () => journal.stop(JOURNAL_STOP_MS));
  const agent = createClusterAgent({
    ...{ options, cluster, client, kernel, violations: journal.log, health: health.subjects, log, metrics },
    onViolation: (violation, occurrences) => exporter?.emit(violationEvent(violation, occurrences)),
  });
  stops.add('agent', AGENT_STOP_MS, () => agent.stop());
  metrics.observeReports({
    ...{ logs: { violations: journal.log, observations: agent.observations }, journal },
    ...(exporter && { export: exporter }),
  });
  await startTelling(context, () => agent.status(), certificates);
  const observers = certificates && (await serveObservers(context, cluster, certificates, agent.sources));
  await agent.start();
  observers?.setServing(true);
}

async function openCertificates(
  { log, stops }: RunContext,
  { grpcCertificateDirectory: directory }: ClusterOptions,
): Promise<CertificateStore | undefined> {
  if (directory === undefined) return undefined;
  const store = certificateStore({
    directory,
    onRefused: (error) =>
      log.error({ err: error, directory }, 'a new certificate is refused; the last good one stays in use'),
  });
  try {
    await store.start();
  } catch (cause) {
    throw new CommandError(`--grpc-mtls-cert-dir ${directory}: ${describeError(cause)}`, { cause });
  }
  stops.add('certificates', SERVER_STOP_MS, () => {
    store.stop();
    return Promise.resolve();
  });
  return store;
}

async function openExport(
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
  const tls =
    isOwn && certificates !== undefined ? tlsFromStore(certificates) : await openCollectorTls(context, otlp);
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

async function openCollectorTls(
  { log, stops }: RunContext,
  { caFile, clientCertificateFile, clientKeyFile }: OtlpOptions,
): Promise<TlsSource | undefined> {
  if (caFile === undefined && clientCertificateFile === undefined) return undefined;
  const files = {
    ...(caFile !== undefined && { authorities: caFile }),
    ...(clientCertificateFile !== undefined && { certificate: clientCertificateFile }),
    ...(clientKeyFile !== undefined && { key: clientKeyFile }),
  };
  try {
    const tls = await tlsFromFiles(files, (error) =>
      log.error({ err: error }, 'new files for the collector are refused; the last good ones stay in use'),
    );
    stops.add('certificates of the collector', SERVER_STOP_MS, () => {
      tls.stop();
      return Promise.resolve();
    });
    return tls;
  } catch (cause) {
    throw new CommandError(`--otlp-ca-cert or --otlp-client-cert: ${describeError(cause)}`, { cause });
  }
}

async function serveObservers(
  { log, stops }: RunContext,
  { grpcPort, grpcControllerName, grpcDebuggerName }: ClusterOptions,
  certificates: CertificateStore,
  sources: ObserverSources,
): Promise<ObserverServer> {
  const server = createObserverServer({
    ...{ sources, certificates, log, host: ALL_ADDRESSES, port: grpcPort },
    clients: new Map([
      [grpcControllerName, 'controller'],
      [grpcDebuggerName, 'debugger'],
    ]),
  });
  let port: number;
  try {
    port = await server.start();
  } catch (cause) {
    throw new CommandError(`cannot serve gRPC at --grpc-port ${grpcPort}: ${describeError(cause)}`, {
      cause,
    });
  }
  stops.add('gRPC server', OBSERVER_STOP_MS, () => server.stop());
  log.info({ port }, 'states and violations are served by gRPC');
  return server;
}

/** Whether nobody will come after this agent. Where that cannot be told, what is pinned stays. */
async function isToRelease(
  { options, log }: RunContext,
  daemonSet: OwnDaemonSet | undefined,
): Promise<boolean> {
  if (options.onExit === 'release') return true;
  if (daemonSet === undefined) return false;
  const state = await daemonSet.state(AbortSignal.timeout(DAEMON_SET_ANSWER_MS));
  switch (state) {
    case 'present':
      return false;
    case 'deleted':
      log.warn({}, 'the DaemonSet of this agent is deleted: all enforcement is taken off this node');
      return true;
    case 'unknown':
      log.warn(
        {},
        'whether the DaemonSet of this agent is deleted is not known: enforcement stays on this node; ' +
          'if the product was uninstalled, run agent release there',
      );
      return false;
  }
}
