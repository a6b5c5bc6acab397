import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { CERTIFICATE_FILE_NAMES } from '@runtime-enforcer/certs/certificate-directory';
import { type CertificateStore, certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { observeCertificateEnds } from '@runtime-enforcer/telemetry/certificate-metric';
import { createHealthEndpoint } from '@runtime-enforcer/telemetry/health-endpoint';
import { clusterAccess } from '@runtime-enforcer/kube/cluster-access';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { createMetricsEndpoint } from '@runtime-enforcer/telemetry/metrics-endpoint';
import { admissionServer } from './admission/admission-server.ts';
import { knownPolicies } from './admission/known-policies.ts';
import { collectorExport } from './collector-export.ts';
import { leaderTasks } from './leader-tasks.ts';
import { createLeadership } from './leadership/leadership.ts';
import { controllerMetrics } from './metrics.ts';
import { metricsAccess } from './metrics-access.ts';
import type { CertificatePlace, ControllerOptions } from './options.ts';
import { statusMetrics } from './status/status-metrics.ts';
import { webhooks } from './webhooks.ts';

/** One part that runs, and the next ones need. */
type Stop = () => Promise<void> | void;

/** A controller that runs. */
export interface RunningController {
  /** Gives the lease back, and ends everything in the opposite order of its start. */
  stop(): Promise<void>;
}

/**
 * Starts everything that a replica does: webhooks, metrics and health at once, the leader's tasks when it leads.
 *
 * @throws Error naming what could not be started; nothing runs then
 */
export async function startController(options: ControllerOptions, log: Logger): Promise<RunningController> {
  const stops: Stop[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).reverse()) {
      try {
        await each();
      } catch (err) {
        log.error({ err }, 'not stopped cleanly');
      }
    }
  };
  try {
    await start(options, log, stops);
    return { stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(options: ControllerOptions, log: Logger, stops: Stop[]): Promise<void> {
  const access = await clusterAccess(options);
  const { client, namespace } = access;
  const host = options.podName ?? hostname();
  const identity = `${host}_${randomBytes(8).toString('hex')}`;
  stops.push(async () => await access.close());
  const isReady = { webhooks: false, policies: false };

  if (options.health !== undefined) {
    const health = createHealthEndpoint(options.health, {
      live: () => [],
      ready: () => [
        ...(isReady.webhooks ? [] : ['the webhooks are not served yet']),
        ...(isReady.policies ? [] : ['the policies of the cluster are not known yet: is the API server up?']),
      ],
    });
    stops.push(async () => await health.stop());
    log.info({ port: await health.start() }, 'health is served');
  }

  if (options.generatedCertificates !== undefined) {
    const { generatedCertificates } = await import('./certificates/generated-certificates.ts');
    const { release, clusterDomain, ...lifetimes } = options.generatedCertificates;
    const generated = generatedCertificates({
      client,
      place: { release, namespace, clusterDomain },
      ...lifetimes,
      directories: {
        webhook: options.webhook.certificates.directory,
        ...(options.status.agentCertificateDirectory !== undefined && {
          controller: options.status.agentCertificateDirectory,
        }),
      },
      log,
    });
    await generated.start();
    stops.push(async () => await generated.stop());
  }
  const openStore = async ({ directory, names }: CertificatePlace): Promise<CertificateStore> => {
    const store = certificateStore({
      directory,
      names,
      onRefused: (err) => log.error({ err, directory }, 'the certificate cannot be used; the last one stays'),
    });
    await store.start();
    stops.push(() => store.stop());
    return store;
  };
  const certificates = await openStore(options.webhook.certificates);

  const metrics = controllerMetrics({
    isLeader: () => leadership.isLeader(),
    promotionDepth: () => tasks.promotionDepth(),
  });
  const { agentCertificateDirectory: directory, agentServerName, ...asked } = options.status;
  const collector = options.otlp && (await collectorExport(options.otlp, log));
  if (collector !== undefined) stops.push(async () => await collector.stop());
  if (directory === undefined) log.warn({}, 'agents are not asked, so every node is missing in every status');
  const agentCertificates =
    directory === undefined ? undefined : await openStore({ directory, names: CERTIFICATE_FILE_NAMES });
  observeCertificateEnds(metrics.registry, {
    webhook: () => certificates.current().notAfter,
    ...(agentCertificates && { agents: () => agentCertificates.current().notAfter }),
  });
  const tasks = leaderTasks({
    host,
    log,
    metrics,
    status: {
      namespace,
      ...asked,
      ...(agentServerName !== undefined && { agentServerName }),
      ...(agentCertificates && { certificates: agentCertificates }),
      metrics: statusMetrics(metrics.registry, () => tasks.statusGauges()),
      ...(collector && { emit: (event) => collector.emit(event) }),
    },
  });
  const leadership = createLeadership({
    client,
    namespace,
    identity,
    timings: options.election,
    tasks: (leading) => tasks.create(leading),
    log,
  });

  const { address, secure, certificates: place } = options.metrics;
  if (address !== undefined) {
    const { registry } = metrics;
    const endpoint = createMetricsEndpoint({
      address,
      metrics: { text: async () => await registry.metrics(), contentType: registry.contentType },
      ...(secure && {
        authorize: metricsAccess(client),
        certificates: place === options.webhook.certificates ? certificates : await openStore(place),
        onRefused: (err) => log.error({ err }, 'the certificate of the metrics cannot be used'),
      }),
    });
    stops.push(async () => await endpoint.stop());
    log.info({ port: await endpoint.start() }, 'metrics are served');
  }

  const policies = knownPolicies({
    client,
    onTrouble: (err, waitMs) => log.warn({ err, waitMs }, 'policies cannot be followed now'),
  });
  stops.push(async () => await policies.stop());
  policies.start();
  void policies.synced.then(() => (isReady.policies = true));

  const server = admissionServer({
    ...options.webhook.address,
    routes: webhooks({ client, policies, unknownPolicy: options.webhook.unknownPolicy }),
    certificates,
    log,
    observe: (route, result, durationMs) => metrics.admission(route, result, durationMs),
  });
  stops.push(async () => await server.stop());
  log.info({ port: await server.start() }, 'webhooks are served');
  isReady.webhooks = true;

  stops.push(async () => await leadership.stop());
  leadership.start();
}
