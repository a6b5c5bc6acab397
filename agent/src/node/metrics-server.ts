import { createServer, type Server } from 'node:http';
import { CommandError } from '../commands/command-error.ts';
import type { BindAddress } from '../commands/bind-address.ts';
import type { AgentMetrics } from '../metrics.ts';

const MAX_CONNECTIONS = 32;
const REQUEST_TIMEOUT_MS = 10_000;

/** Serves the metrics over HTTP. */
export interface MetricsServer {
  /** Resolves with the port. Rejects with a {@link CommandError} that names the address. */
  start(): Promise<number>;
  stop(): Promise<void>;
}

export function createMetricsServer(
  { host, port }: BindAddress,
  metrics: Pick<AgentMetrics, 'text' | 'contentType'>,
): MetricsServer {
  let server: Server | undefined;
  return {
    async start() {
      server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
        if (request.url !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) {
          response.writeHead(404).end('the metrics are at /metrics\n');
          return;
        }
        metrics.text().then(
          (text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text),
          () => response.writeHead(500).end('the metrics could not be read\n'),
        );
      });
      server.maxConnections = MAX_CONNECTIONS;
      const listening = Promise.withResolvers<undefined>();
      server.once('error', listening.reject);
      server.listen(port, host, () => listening.resolve(undefined));
      try {
        await listening.promise;
      } catch (cause) {
        throw new CommandError(`cannot serve metrics at --metrics-bind-address ${host}:${port}`, { cause });
      }
      server.on('error', () => undefined);
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async stop() {
      if (server === undefined) return;
      const closed = Promise.withResolvers<undefined>();
      server.close(() => closed.resolve(undefined));
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
