import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { KubeConfig } from '@kubernetes/client-node';
import { type ApiClient, apiClient } from './api-client.ts';
import { pooledConfig } from './pooled-config.ts';

/** An HTTP server that answers as a test says, in place of an API server. */
export interface FakeApiServer {
  readonly url: string;
  readonly client: ApiClient;
  /** The requests so far: method, path and query. */
  readonly requests: readonly string[];
  /** How many connections have been opened. */
  connections(): number;
  /** Breaks every connection. */
  cut(): void;
  stop(): Promise<void>;
}

export interface FakeRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Answers with JSON. */
  readonly reply: (code: number, json: unknown, headers?: Readonly<Record<string, string>>) => void;
  /** Begins a watch. @returns sends one event */
  readonly watch: () => (type: string, object: unknown) => void;
  readonly response: ServerResponse;
}

/** @param answer called for each request, in order of arrival; @param user see KubeConfig */
export async function startFakeApiServer(
  answer: (request: FakeRequest) => void,
  user: Readonly<Record<string, unknown>> = {},
): Promise<FakeApiServer> {
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((message, response) => {
    const url = new URL(message.url ?? '/', 'http://api');
    requests.push(`${message.method ?? ''} ${message.url ?? ''}`);
    void readBody(message).then((body) => {
      answer({
        method: message.method ?? '',
        url,
        headers: message.headers,
        body,
        response,
        reply: (code, json, headers = {}) => {
          response.writeHead(code, { 'content-type': 'application/json', ...headers });
          response.end(JSON.stringify(json));
        },
        watch: () => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.flushHeaders();
          return (type, object) => void response.write(`${JSON.stringify({ type, object })}\n`);
        },
      });
    });
  });
  server.on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const url = `http://127.0.0.1:${port}`;
  const pool = pooledConfig((config: KubeConfig) => {
    config.loadFromClusterAndUser(
      { name: 'fake', server: url, skipTLSVerify: true },
      { name: 'test', ...user },
    );
  });
  return {
    url,
    client: apiClient(pool),
    requests,
    connections: () => connections,
    cut: () => server.closeAllConnections(),
    async stop() {
      await pool.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** An object as the API server would hold it. */
export function fakeObject(name: string, version: number, fields: Readonly<Record<string, unknown>> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: String(version) },
    ...fields,
  };
}

/** A Status as the API server sends it. */
export function fakeStatus(code: number, reason: string, message = 'because'): Record<string, unknown> {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message };
}

async function readBody(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
