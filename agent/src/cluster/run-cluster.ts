import { join } from 'node:path';
import { certificateStore, type CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { createHealthEndpoint } from '@runtime-enforcer/telemetry/health-endpoint';
import type { ClusterOptions } from '../commands/cluster-options.ts';
import { CommandError } from '../commands/command-error.ts';
import { startMetricsEndpoint, type RunContext } from '../commands/run-context.ts';
import type { AgentIdentity } from '../node/agent-identity.ts';
import type { findNodeFit } from '../node/kernel-side.ts';
import { ownDirectory } from '../node/own-directory.ts';
import { readReleaseMark } from '../node/release-mark.ts';
import { AGENT_VERSION } from '../version.ts';
import { openClusterClient } from './cluster-client.ts';
import { openExport } from './collector-export.ts';
import { createOwnDaemonSet } from './daemon-set.ts';
import { enforce, TERM_STOP_MS, type TermParts } from './enforcing-term.ts';
import { createNodeHealth } from './node-health.ts';
import { createNodeTerms } from './node-terms.ts';
import { waitReleased } from './released-term.ts';

const SERVER_STOP_MS = 200;
const CLIENT_STOP_MS = 300;

/**
 * Runs an agent of a cluster until it is told to end. Probes are answered first; then the agent before is asked for the
 * node, and what it has left in the kernel and in the journal is taken over. Rejects if the agent cannot go on; what
 * was started is in `stops`.
 */
export async function runCluster(
  context: RunContext,
  cluster: ClusterOptions,
  findFit: typeof findNodeFit,
): Promise<void> {
  const { options, log, metrics, stops } = context;
  const journalDirectory = cluster.journalDirectory ?? join(options.stateDirectory, 'journal');
  await ownDirectory(journalDirectory, '--journal-dir', 0o700);
  const api = openClusterClient(cluster.kubeconfig);
  const { client } = api;
  stops.add('API client', CLIENT_STOP_MS, () => api.close());
  const certificates = await openCertificates(context, cluster);
  if (certificates === undefined)
    log.warn(
      {},
      'nothing is served by gRPC, because of --grpc-mtls-enabled=false: no controller sees this node',
    );
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
  await startMetricsEndpoint(context, certificates);

  const daemonSet =
    cluster.ownPod && createOwnDaemonSet({ client, ownPod: cluster.ownPod, log, failures: metrics.failures });
  if (daemonSet !== undefined) {
    daemonSet.start();
    stops.add('own DaemonSet', CLIENT_STOP_MS, () => daemonSet.stop());
  }

  const node = findFit({ options, log, failures: metrics.failures });
  const parts: TermParts = {
    ...{ context, cluster, client, certificates, exporter, daemonSet, node, health: health.subjects },
    journalDirectory,
  };
  const terms = createNodeTerms({
    ...{ context, node, self: identity(cluster) },
    async serve(term) {
      const mark = await readReleaseMark(options.stateDirectory);
      if (mark === undefined) await enforce(term, parts);
      else await waitReleased(term, mark, parts);
    },
    onStandby(sentence) {
      health.subjects.standby = sentence;
      metrics.setRole(sentence === undefined ? 'starting' : 'standby');
    },
  });
  stops.add('term', TERM_STOP_MS, () => terms.stop());
  await terms.run();
}

function identity({ ownPod }: ClusterOptions): AgentIdentity {
  const pod = ownPod === undefined ? '' : `${ownPod.namespace}/${ownPod.name}`;
  return { pid: process.pid, pod, version: AGENT_VERSION };
}

/**
 * The node is enforced with or without a certificate: an agent that ended for want of one would let the runtime start
 * containers unasked. Until there is a usable pair nobody can connect.
 */
async function openCertificates(
  { log, metrics, stops }: RunContext,
  { grpcCertificateDirectory: directory }: ClusterOptions,
): Promise<CertificateStore | undefined> {
  if (directory === undefined) return undefined;
  let isUsable = false;
  const store = certificateStore({
    directory,
    onRefused: (error) =>
      log.error(
        { err: error, directory },
        isUsable
          ? 'a new certificate is refused; the last good one stays in use'
          : 'there is no usable certificate in --grpc-mtls-cert-dir: the node is enforced, and no controller sees it',
      ),
    async placeholder() {
      const { placeholderPair } = await import('@runtime-enforcer/certs/placeholder-pair');
      return await placeholderPair(new Date());
    },
  });
  store.onChange(() => {
    isUsable = true;
  });
  await store.start();
  metrics.observeCertificate(() => (isUsable ? store.current().notAfter : undefined));
  stops.add('certificates', SERVER_STOP_MS, () => {
    store.stop();
    return Promise.resolve();
  });
  return store;
}
