import { once } from 'node:events';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { IncomingMessage } from 'node:http';
import { startFakeRuntime } from '@runtime-enforcer/agent/nri/fake-runtime';
import { freePorts } from '../cluster/port.ts';
import { AGENT_NAMESPACE, AGENT_POD, type AgentAccess } from './bench-cluster.ts';
import { startAgentReader } from './agent-reader.ts';
import { serveAgent, type HostAgent } from './host-agent.ts';
import type { HostContainer } from './host-containers.ts';
import { sampleOf, startHostProcess, type LogLine } from './host-process.ts';
import { WORKLOAD_NAMESPACE } from './workload.ts';

const READY_POLL_MS = 20;
const READY_TIMEOUT_MS = 120_000;
const SELECTOR = JSON.stringify({ matchLabels: { 'kubernetes.io/metadata.name': WORKLOAD_NAMESPACE } });

/** An agent of a cluster, that learns in the workload's namespace, and the runtime that it is connected to. */
export interface ClusterHostAgent extends HostAgent {
  /** From the start of its process until it said so itself and held as many policies as it was to have. */
  readonly readySeconds: number;
  /** Reads all that it tells a controller for the first time. Resolves with how many policies those are. */
  readAll(): Promise<number>;
}

/**
 * Starts a bundled agent as it is deployed, and waits until its probe says that it is ready and all policies are
 * loaded.
 *
 * @param options.command runs it: the bundle, and whatever is to stand before it
 * @param options.policies how many there are in the API
 * @throws Error with the end of its log if it does not get ready
 */
export async function startClusterHostAgent(options: {
  readonly directory: string;
  readonly command: readonly string[];
  readonly access: AgentAccess;
  readonly policies: number;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly running?: readonly HostContainer[];
  readonly onLine?: (line: LogLine) => void;
}): Promise<ClusterHostAgent> {
  const { directory, command, access, policies, args = [], running = [], onLine } = options;
  const [probePort = 0] = await freePorts(1);
  const socketPath = join(directory, 'nri.sock');
  const runtime = await startFakeRuntime({ socketPath });
  const served = serveAgent(
    runtime,
    running.map(({ pod }) => pod),
    running.map(({ container }) => ({ ...container, state: 'running' })),
  );
  // Told below.
  served.catch(() => undefined);
  const loaded = Promise.withResolvers<undefined>();
  const keys = new Set<string>();
  if (policies === 0) loaded.resolve(undefined);
  const agent = startHostProcess({
    command: [
      ...command,
      ...['--kubeconfig', access.kubeconfig, '--node-name', access.nodeName],
      ...['--grpc-mtls-cert-dir', access.certificates, '--grpc-port', '0'],
      ...['--health-probe-bind-address', `127.0.0.1:${probePort}`, '--metrics-bind-address', '127.0.0.1:0'],
      ...['--nri-socket-path', socketPath, '--state-dir', join(directory, 'state')],
      ...['--learning-namespace-selector', SELECTOR],
      ...args,
    ],
    env: { POD_NAME: AGENT_POD, POD_NAMESPACE: AGENT_NAMESPACE, ...options.env },
    logsTo: 'stdout',
    onLine(line) {
      if (line.msg === 'policy loaded' && line.policy !== undefined) keys.add(line.policy);
      if (keys.size === policies) loaded.resolve(undefined);
      onLine?.(line);
    },
  });
  const reader = startAgentReader();
  const stop = async (): Promise<void> => {
    reader.stop();
    await agent.stop();
    await runtime.close();
  };
  try {
    const [plugin] = await Promise.all([served, agent.ready()]);
    await untilReady(probePort);
    await Promise.race([
      loaded.promise,
      lateAfter(READY_TIMEOUT_MS, () => `${keys.size} of ${policies} policies`),
    ]);
    const readySeconds = (performance.now() - agent.startedMs) / 1_000;
    const { port: metricsPort = 0 } = await agent.line('metrics are served');
    const { port: grpcPort = 0 } = await agent.line('states and violations are served by gRPC');
    return {
      ...{ plugin, readySeconds, stop },
      residentBytes: () => agent.residentBytes(),
      metric: async (sample) => sampleOf(await readMetrics(metricsPort, access.authority), sample),
      readAll: async () =>
        await reader.readAll({
          port: grpcPort,
          ...{ podName: AGENT_POD, namespace: AGENT_NAMESPACE },
          certificates: access.controllerCertificates,
        }),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function untilReady(port: number): Promise<void> {
  const end = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    const said = await response.text();
    if (response.ok) return;
    if (performance.now() > end) throw new Error(`the agent does not get ready: ${said}`);
    await delay(READY_POLL_MS);
  }
}

async function lateAfter(ms: number, what: () => string): Promise<never> {
  await delay(ms, undefined, { ref: false });
  throw new Error(`the agent has loaded only ${what()}`);
}

async function readMetrics(port: number, ca: string): Promise<string> {
  const servername = `${AGENT_POD}.${AGENT_NAMESPACE}`;
  const request = get({ host: '127.0.0.1', port, path: '/metrics', ca, servername });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return await text(response);
}
