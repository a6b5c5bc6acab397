import { createHash } from 'node:crypto';
import type { AgentOptions } from 'node:https';
import { type Cluster, KubeConfig } from '@kubernetes/client-node';
import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { type TokenFile, tokenFile, tokenFileUser, tokenPathOf } from './token-file.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** Below the 90 s after which an API server closes an idle connection, so that no request meets the closing. */
const IDLE_MS = 60_000;
/** Each open watch holds one. */
const MAX_CONNECTIONS = 32;

/** Where the API server is, who we are, and the connections to it. */
export interface PooledConfig {
  /** For typed calls: `config.makeApiClient(CoreV1Api)` uses the same connections. */
  readonly config: KubeConfig;
  readonly tokens: TokenFile;
  /** Breaks all connections; nothing may be asked afterwards. */
  close(): Promise<void>;
}

/**
 * Prepares a configuration whose requests share connections. The client opens a new pool, and so a TLS connection,
 * for every request; here one lives until the server, the CA or the client's certificate change in content.
 *
 * @param load fills the empty configuration, for example `(config) => config.loadFromCluster()`
 */
export function pooledConfig(load: (config: KubeConfig) => void): PooledConfig {
  const config = new KubeConfig();
  const tokens = tokenFile();
  config.addAuthenticator(tokens);
  load(config);
  // The client's own reader of token files keeps a refused token for a minute.
  config.users = config.users.map((user) => {
    const path = tokenPathOf(user);
    return path === undefined ? user : tokenFileUser(user.name, path);
  });

  let pool: { readonly key: string; readonly dispatcher: Dispatcher } | undefined;
  const retired = new Set<Dispatcher>();

  function dispatcherFor(cluster: Cluster | null, agentOptions: AgentOptions): Dispatcher {
    const key = poolKey(cluster, agentOptions);
    if (pool?.key === key) return pool.dispatcher;
    if (pool !== undefined) retire(pool.dispatcher);
    pool = { key, dispatcher: openDispatcher(config, cluster, agentOptions) };
    return pool.dispatcher;
  }

  /** What is under way on it may end, an open watch too. */
  function retire(dispatcher: Dispatcher): void {
    retired.add(dispatcher);
    void dispatcher.close().then(() => retired.delete(dispatcher));
  }

  // Private in the client's types, and the only place where its connections can be shared.
  Object.defineProperty(config, 'createDispatcher', { value: dispatcherFor });
  return {
    config,
    tokens,
    async close() {
      const dispatchers = [...retired, ...(pool === undefined ? [] : [pool.dispatcher])];
      await Promise.all(dispatchers.map(async (dispatcher) => await dispatcher.destroy()));
    },
  };
}

function poolKey(cluster: Cluster | null, options: AgentOptions): string {
  const hash = createHash('sha256');
  const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = options;
  const parts = [
    cluster?.server,
    cluster?.proxyUrl,
    ca,
    cert,
    key,
    pfx,
    passphrase,
    rejectUnauthorized,
    servername,
  ];
  for (const part of parts) hash.update(`${JSON.stringify([part])}\n`);
  return hash.digest('base64');
}

function openDispatcher(config: KubeConfig, cluster: Cluster | null, agentOptions: AgentOptions): Dispatcher {
  const options = config.createDispatcherOptions(cluster, agentOptions);
  if (options.type === 'proxy' || options.type === 'socks') {
    const create = Reflect.get(KubeConfig.prototype, 'createDispatcher') as (
      this: KubeConfig,
      cluster: Cluster | null,
      options: AgentOptions,
    ) => Dispatcher;
    return create.call(config, cluster, agentOptions);
  }
  return new Agent({
    // One watch that is not read must not hold up the requests beside it, as it can on one HTTP/2 connection.
    allowH2: false,
    connections: MAX_CONNECTIONS,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Requests and watches have deadlines of their own.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      ...(options.type === 'agent' ? (options.connect as buildConnector.BuildOptions) : {}),
      timeout: CONNECT_TIMEOUT_MS,
    },
  });
}
