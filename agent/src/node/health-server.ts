import { createServer, type Server } from 'node:http';
import type { BindAddress } from '../commands/bind-address.ts';
import { CommandError } from '../commands/command-error.ts';

const MAX_CONNECTIONS = 32;
const REQUEST_TIMEOUT_MS = 10_000;

/** What keeps the agent from being in order, in words; nothing when it is. */
export interface HealthChecks {
  /** Whether a restart would help. */
  readonly live: () => readonly string[];
  /** Whether the node is enforced as it should be. */
  readonly ready: () => readonly string[];
}

/** Answers `/healthz` and `/readyz`, with 503 and the reasons where something is not in order. */
export interface HealthServer {
  /** Resolves with the port. Rejects with a {@link CommandError} that names the address. */
  start(): Promise<number>;
  stop(): Promise<void>;
}

export function createHealthServer({ host, port }: BindAddress, checks: HealthChecks): HealthServer {
  let server: Server | undefined;
  const problemsAt = (url: string | undefined): readonly string[] | undefined => {
    switch (url) {
      case '/healthz':
        return checks.live();
      case '/readyz':
        return checks.ready();
      default:
        return undefined;
    }
  };
  return {
    async start() {
      server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
        const problems = problemsAt(request.url);
        if (problems === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) {
          response.writeHead(404).end('/healthz and /readyz are here\n');
          return;
        }
        response.writeHead(problems.length === 0 ? 200 : 503, {
          'content-type': 'text/plain; charset=utf-8',
        });
        response.end(problems.length === 0 ? 'ok\n' : problems.map((problem) => `${problem}\n`).join(''));
      });
      server.maxConnections = MAX_CONNECTIONS;
      const listening = Promise.withResolvers<undefined>();
      server.once('error', listening.reject);
      server.listen(port, host, () => listening.resolve(undefined));
      try {
        await listening.promise;
      } catch (cause) {
        throw new CommandError(`cannot answer probes at --health-probe-bind-address ${host}:${port}`, {
          cause,
        });
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
