import {
  createAuthority,
  issueCertificate,
  type CertifiedKey,
  type CertificateRequest,
} from '@runtime-enforcer/certs/authority';
import { parseKeyPair, type KeyPair } from '@runtime-enforcer/certs/key-pair';
import { createAgentClient, type AgentClient, type AgentClientOptions } from './agent-client.ts';
import type { RpcLog } from './refusal-log.ts';
import {
  createRpcServer,
  type ObserverHandlers,
  type RpcServer,
  type RpcServerOptions,
} from './rpc-server.ts';

const HOUR_MS = 3_600_000;

/** Where the certificates of a test come from, and what a store would say of them. For tests. */
export interface TestStore {
  current(): KeyPair;
  onChange(listener: (pair: KeyPair) => void): () => void;
  replace(pair: KeyPair): void;
}

export function testStore(pair: KeyPair): TestStore {
  let now = pair;
  const listeners = new Set<(pair: KeyPair) => void>();
  return {
    current: () => now,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    replace(next) {
      now = next;
      for (const listener of listeners) listener(next);
    },
  };
}

export async function testAuthority(): Promise<CertifiedKey> {
  return await createAuthority({ commonName: 'test', now: new Date(), validForMs: HOUR_MS });
}

/** A pair for one DNS name, trusting the authority that issued it unless told otherwise. */
export async function testPair(
  authority: CertifiedKey,
  dnsName: string,
  request: Partial<CertificateRequest> & { readonly trusts?: CertifiedKey } = {},
): Promise<KeyPair> {
  const now = request.now ?? new Date();
  const { trusts = authority } = request;
  const issued = await issueCertificate(authority, {
    commonName: 'x',
    dnsNames: [dnsName],
    usages: ['client', 'server'],
    validForMs: HOUR_MS,
    ...request,
    now,
  });
  return parseKeyPair(
    { 'tls.crt': issued.certificate, 'tls.key': issued.key, 'ca.crt': trusts.certificate },
    now,
  );
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

export function testLog(): RpcLog & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const add =
    (level: LogLine['level']) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields, message });
    };
  return { lines, info: add('info'), warn: add('warn'), error: add('error') };
}

/** Answers everything with nothing. */
export const SILENT_HANDLERS: ObserverHandlers = {
  watch: async (_, send, signal) => {
    await send({});
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  },
  acknowledge: () => ({ violationsAccepted: true, observationsAccepted: false }),
  listPoliciesStatus: () => ({ policies: new Map(), nextPageToken: '' }),
  listPods: () => ({ pods: [], nextPageToken: '' }),
  listBindings: () => Promise.resolve({ bindings: [], nextPageToken: '' }),
};

export const AGENT_NAME = 'agent-1.enforcer';

/** A server on a free port of the loopback address, with clients of it. */
export async function startTestServer(
  authority: CertifiedKey,
  options: Partial<RpcServerOptions> = {},
): Promise<{
  readonly server: RpcServer;
  readonly port: number;
  readonly store: TestStore;
  readonly log: ReturnType<typeof testLog>;
  readonly client: (pair: KeyPair, changed?: Partial<AgentClientOptions>) => AgentClient;
  readonly stop: () => Promise<void>;
}> {
  const store = testStore(await testPair(authority, AGENT_NAME));
  const log = testLog();
  const server = createRpcServer({
    host: '127.0.0.1',
    port: 0,
    certificates: store,
    handlers: SILENT_HANDLERS,
    log,
    ...options,
  });
  const port = await server.start();
  server.setServing(true);
  const clients: AgentClient[] = [];
  return {
    server,
    port,
    store,
    log,
    client(pair, changed = {}) {
      const client = createAgentClient({
        address: '127.0.0.1',
        port,
        podName: 'agent-1',
        namespace: 'enforcer',
        certificates: testStore(pair),
        ...changed,
      });
      clients.push(client);
      return client;
    },
    async stop() {
      for (const client of clients) client.close();
      await server.stop();
    },
  };
}
