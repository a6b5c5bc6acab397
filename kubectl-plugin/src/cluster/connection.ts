import { existsSync, readFileSync } from 'node:fs';
import type { KubeConfig } from '@kubernetes/client-node';
import { type ApiClient, apiClient, type ApiRequest } from '@runtime-enforcer/kube/api-client';
import { pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { parseDuration } from '../duration.ts';
import type { KubeFlags } from './kube-flags.ts';
import { type Impersonation, readKubeconfig } from './kubeconfig.ts';
import { proxyFromEnvironment } from './proxy-environment.ts';
import { type Target, targetOf } from './target.ts';

/** Under this name the API server notes who wrote. */
export const FIELD_MANAGER = 'kubectl-runtime_enforcer';

const REQUEST_TIMEOUT_MS = 30_000;
const TELL_REQUESTS = 6;
const ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/** An API server, and the namespace that commands work in. */
export interface Connection {
  readonly client: ApiClient;
  readonly namespace: string;
  readonly server: string;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly flags: KubeFlags;
  /** All writes are tried by the server, and none is kept. */
  readonly dryRun?: boolean;
  /** Told each request, for `-v 6`. */
  readonly note: (line: string) => void;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** Prepares the connection; nothing is asked yet. Throws what {@link targetOf} throws. */
export function connect(options: ConnectionOptions): Connection {
  const { flags, environment = process.env } = options;
  const kubeconfig = readKubeconfig(flags.kubeconfig, environment);
  const isPod = kubeconfig.files.length === 0 && environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  const target =
    isPod && flags.server === undefined ? undefined : throughProxy(targetOf(kubeconfig, flags), environment);
  const pool = pooledConfig((config) => {
    if (target === undefined) config.loadFromCluster();
    else config.loadFromClusterAndUser(target.cluster, withExecInfo(target));
  });
  if (target?.impersonation !== undefined) impersonate(pool.config, target.impersonation);
  const client = requestsOf(apiClient(pool), options);
  return {
    client,
    namespace: target?.namespace ?? flags.namespace ?? ownNamespace(),
    server: pool.config.getCurrentCluster()?.server ?? '',
    close: async () => await pool.close(),
  };
}

/** A proxy that the kubeconfig or a flag names wins over the environment's. */
function throughProxy(target: Target, environment: NonNullable<ConnectionOptions['environment']>): Target {
  const { cluster } = target;
  const proxyUrl = cluster.proxyUrl ?? proxyFromEnvironment(cluster.server, environment);
  return proxyUrl === undefined ? target : { ...target, cluster: { ...cluster, proxyUrl } };
}

function ownNamespace(): string {
  const file = `${ACCOUNT_DIRECTORY}/namespace`;
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : 'default';
}

/** client-go tells a credential plugin in its environment what is asked for; the client library does not. */
function withExecInfo({ user, cluster }: Target): Target['user'] {
  const exec = user.exec as
    | {
        readonly apiVersion?: string;
        readonly provideClusterInfo?: boolean;
        readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
      }
    | null
    | undefined;
  if (exec === null || exec === undefined) return user;
  const info = {
    kind: 'ExecCredential',
    apiVersion: exec.apiVersion ?? 'client.authentication.k8s.io/v1',
    spec: {
      interactive: process.stdin.isTTY,
      ...(exec.provideClusterInfo === true && {
        cluster: {
          server: cluster.server,
          'tls-server-name': cluster.tlsServerName,
          'insecure-skip-tls-verify': cluster.skipTLSVerify,
          'certificate-authority-data': cluster.caData,
          'proxy-url': cluster.proxyUrl,
        },
      }),
    },
  };
  const told = { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) };
  return { ...user, exec: { ...exec, env: [...(exec.env ?? []), told] } };
}

/** The client library acts as a user, but not as a member of groups. */
function impersonate(config: KubeConfig, { user, uid, groups, extra }: Impersonation): void {
  const authenticate = config.applySecurityAuthentication.bind(config);
  config.applySecurityAuthentication = async (context) => {
    await authenticate(context);
    context.setHeaderParam('Impersonate-User', user);
    if (uid !== undefined) context.setHeaderParam('Impersonate-Uid', uid);
    const repeated = new Map<string, readonly string[]>(
      [...extra].map(([key, values]) => [extraHeader(key), values]),
    );
    if (groups.length > 0) repeated.set('Impersonate-Group', groups);
    // Each value is a header of its own; the types know single ones only, and the values are handed on as they are.
    for (const [name, values] of repeated) context.setHeaderParam(name, [...values] as unknown as string);
  };
}

function extraHeader(key: string): string {
  return `Impersonate-Extra-${encodeURIComponent(key)}`;
}

function requestsOf(client: ApiClient, { flags, dryRun = false, note }: ConnectionOptions): ApiClient {
  const given =
    flags.requestTimeout === undefined ? 0 : parseDuration(flags.requestTimeout, '--request-timeout');
  const timeoutMs = given > 0 ? given : REQUEST_TIMEOUT_MS;
  const isTold = (flags.verbosity ?? 0) >= TELL_REQUESTS;
  const prepared = (request: ApiRequest): ApiRequest => {
    const isWrite = request.method !== undefined && request.method !== 'GET';
    const query = {
      ...request.query,
      ...(isWrite && { fieldManager: FIELD_MANAGER, dryRun: dryRun ? 'All' : undefined }),
    };
    return { timeoutMs, ...request, query };
  };
  const timed = async <T>(request: ApiRequest, work: (prepared: ApiRequest) => Promise<T>): Promise<T> => {
    const start = performance.now();
    try {
      return await work(prepared(request));
    } finally {
      if (isTold)
        note(`${request.method ?? 'GET'} ${request.path} (${Math.round(performance.now() - start)} ms)`);
    }
  };
  return {
    request: async (request) => await timed(request, async (each) => await client.request(each)),
    stream: async (request) => await timed(request, async (each) => await client.stream(each)),
  };
}
