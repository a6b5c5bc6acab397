import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { BoundedOutput } from '../bounded-output.ts';
import type { AgentMetrics } from '../metrics.ts';
import { createMetricsServer } from '../node/metrics-server.ts';
import { createStatusSocket } from '../node/status-socket.ts';
import type { AgentStatus } from '../node/agent-status.ts';
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
  /** Aborted when the agent is told to end. */
  readonly termination: AbortSignal;
}

/** Begins to tell operators at the node, and whoever reads metrics, how the agent is. Rejects with a CommandError. */
export async function startTelling(
  { options, log, metrics, stops }: RunContext,
  status: () => Promise<AgentStatus>,
): Promise<void> {
  const socket = createStatusSocket(options.stateDirectory, status);
  await socket.start();
  stops.add('status socket', SERVER_STOP_MS, () => socket.stop());
  if (options.metricsAddress === undefined) return;
  const server = createMetricsServer(options.metricsAddress, metrics);
  const port = await server.start();
  stops.add('metrics server', SERVER_STOP_MS, () => server.stop());
  log.info({ host: options.metricsAddress.host, port }, 'metrics are served');
}
