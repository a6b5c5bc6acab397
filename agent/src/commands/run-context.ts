import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { createMetricsEndpoint } from '@runtime-enforcer/telemetry/metrics-endpoint';
import type { BoundedOutput } from '../bounded-output.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { AgentStatus } from '../node/agent-status.ts';
import { createStatusSocket } from '../node/status-socket.ts';
import { CommandError } from './command-error.ts';
import type { RunOptions } from './run-options.ts';
import type { StopStack } from './stop-stack.ts';

const SERVER_STOP_MS = 200;

/** What a running agent stands on, whatever its mode. */
export interface RunContext {
  readonly options: RunOptions;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  /** Standard output. */
  readonly out: BoundedOutput;
  /** What has been started; the parts are stopped in the opposite order. */
  readonly stops: StopStack;
  /** To be called when the agent does its work; again after it has stood by. */
  readonly onReady: () => void;
  /** Aborted when the agent is told to end. */
  readonly termination: AbortSignal;
}

/** Begins to tell operators at the node how the agent is. Rejects with a {@link CommandError} that names the directory. */
export async function startStatusSocket(
  { options }: RunContext,
  stops: StopStack,
  status: () => Promise<AgentStatus>,
): Promise<void> {
  const socket = createStatusSocket(options.stateDirectory, status);
  await socket.start();
  stops.add('status socket', SERVER_STOP_MS, () => socket.stop());
}

/**
 * Serves metrics where an address is given, over TLS where there are certificates. Rejects with a {@link CommandError}
 * that names the address.
 */
export async function startMetricsEndpoint(
  { options, log, metrics, stops }: RunContext,
  certificates?: CertificateStore,
): Promise<void> {
  if (options.metricsAddress === undefined) return;
  const { host } = options.metricsAddress;
  const endpoint = createMetricsEndpoint({
    ...{ address: options.metricsAddress, metrics },
    ...(certificates && { certificates }),
    onRefused: (error) => log.error({ err: error }, 'metrics go on with the certificate before'),
  });
  try {
    const port = await endpoint.start();
    stops.add('metrics', SERVER_STOP_MS, () => endpoint.stop());
    log.info({ host, port, tls: certificates !== undefined }, 'metrics are served');
  } catch (cause) {
    const address = `--metrics-bind-address ${host}:${options.metricsAddress.port}`;
    throw new CommandError(`cannot serve metrics at ${address}: ${describeError(cause)}`, { cause });
  }
}
