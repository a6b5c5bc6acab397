import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { ClusterOptions } from '../commands/cluster-options.ts';
import { CommandError } from '../commands/command-error.ts';
import type { StopStack } from '../commands/stop-stack.ts';
import {
  createObserverServer,
  type ObserverServer,
  type ObserverSources,
} from '../server/observer-server.ts';

const OBSERVER_STOP_MS = 2_300;
const ALL_ADDRESSES = '0.0.0.0';

/** Serves states and reports to controllers. Rejects with a {@link CommandError} that names the port. */
export async function serveObservers(
  { log, stops }: { readonly log: Logger; readonly stops: StopStack },
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
