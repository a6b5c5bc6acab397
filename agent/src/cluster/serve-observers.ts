import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { ClusterOptions } from '../commands/cluster-options.ts';
import { CommandError } from '../commands/command-error.ts';
import type { StopStack } from '../commands/stop-stack.ts';
import type { AgentMetrics } from '../metrics.ts';
import {
  createObserverServer,
  type ObserverServer,
  type ObserverSources,
} from '../server/observer-server.ts';

const OBSERVER_STOP_MS = 2_300;
/** Of both protocols where the machine has both. */
const ALL_ADDRESSES = '';

/** Serves states and reports to controllers. Rejects with a {@link CommandError} that names the port. */
export async function serveObservers(
  {
    log,
    stops,
    metrics,
  }: {
    readonly log: Logger;
    readonly stops: StopStack;
    readonly metrics: Pick<AgentMetrics, 'observeServer'>;
  },
  { grpcPort, grpcControllerName, grpcDebuggerName }: ClusterOptions,
  certificates: Pick<CertificateStore, 'current' | 'onChange'>,
  sources: ObserverSources,
): Promise<ObserverServer> {
  const server = createObserverServer({
    ...{ sources, certificates, log, host: ALL_ADDRESSES, port: grpcPort },
    clients: new Map([
      [grpcControllerName, 'controller'],
      [grpcDebuggerName, 'debugger'],
    ]),
  });
  const port = await server.start().catch((cause: unknown) => {
    const message = `cannot serve gRPC at --grpc-port ${grpcPort}: ${describeError(cause)}`;
    throw new CommandError(message, { cause });
  });
  stops.add('gRPC server', OBSERVER_STOP_MS, () => server.stop());
  metrics.observeServer(server.counters);
  log.info({ port }, 'states and violations are served by gRPC');
  return server;
}
