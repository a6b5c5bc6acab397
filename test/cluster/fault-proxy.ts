import { createServer, request as forward, type ServerOptions } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { ControlPlane } from './control-plane.ts';

/** What befalls a request: undefined lets it pass. */
export type Fault =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | 'cut'
  | 'stall'
  /** The API server does what it is asked, and its answer is lost. */
  | 'lost answer'
  | { readonly delayMs: number };

/** Stands between clients and the API server, and does to them what networks and servers do. */
export interface FaultProxy {
  readonly url: string;
  /** Method and path with query of each request, in order of arrival. */
  readonly requests: readonly string[];
  /** Decides over every request from now on. */
  setFault(decide: ((request: string) => Fault | undefined) | undefined): void;
  /** Breaks all connections, open watches too. */
  cutAll(): void;
  /** Passes nothing more on of the answers that are under way, and leaves their connections open. */
  stallAll(): void;
  connections(): number;
  stop(): Promise<void>;
}

/** Clients are passed on by their bearer token; a client certificate ends here. */
export async function startFaultProxy(plane: ControlPlane): Promise<FaultProxy> {
  const { authority, server: identity } = plane.credentials;
  const options: ServerOptions = { cert: identity.certificate, key: identity.key };
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const underWay = new Set<IncomingMessage>();
  let connections = 0;
  let decide: ((request: string) => Fault | undefined) | undefined;

  function pass(message: IncomingMessage, response: ServerResponse, isLost = false): void {
    const upstream = forward(
      new URL(message.url ?? '/', plane.url),
      { method: message.method, headers: message.headers, ca: authority.certificate, agent: false },
      (answer) => {
        if (isLost) {
          answer.resume().on('close', () => response.destroy());
          return;
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        underWay.add(answer);
        answer.on('close', () => underWay.delete(answer));
        answer.on('error', () => response.destroy());
        answer.pipe(response);
      },
    );
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    message.pipe(upstream);
  }

  const server = createServer(options, (message, response) => {
    const line = `${message.method ?? ''} ${message.url ?? ''}`;
    requests.push(line);
    const fault = decide?.(line);
    if (fault === undefined) pass(message, response);
    else if (fault === 'lost answer') pass(message, response, true);
    else if (fault === 'cut') response.destroy();
    else if (fault === 'stall') message.resume();
    else if ('delayMs' in fault) setTimeout(() => pass(message, response), fault.delayMs);
    else {
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(JSON.stringify(fault.body ?? { kind: 'Status', code: fault.status, reason: 'Injected' }));
    }
  });
  server.on('secureConnection', (socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    url: `https://127.0.0.1:${address.port}`,
    requests,
    setFault: (next) => (decide = next),
    cutAll() {
      for (const socket of sockets) socket.destroy();
    },
    stallAll() {
      for (const answer of underWay) answer.unpipe();
    },
    connections: () => connections,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
