import { rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, apiClient } from '@runtime-enforcer/kube/api-client';
import { type PooledConfig, pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { tokenFileUser } from '@runtime-enforcer/kube/token-file';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { runDirectory } from '../vm/run-directory.ts';
import { type ClusterCredentials, makeClusterCredentials } from './cluster-credentials.ts';
import { etcdBinaries } from './etcd-binary.ts';
import { KUBERNETES_VERSION, kubernetesBinary } from './kubernetes-binary.ts';
import { freePorts } from './port.ts';
import { type ServerProcess, startServer } from './server-process.ts';

const READY_BUDGET_MS = 60_000;
const READY_POLL_MS = 100;
const PROBE_TIMEOUT_MS = 2_000;
const PORT_ATTEMPTS = 3;
const TOKEN_SECONDS = 3_600;

/** Who asks, and over which connections. */
export interface ClusterClient extends PooledConfig {
  readonly client: ApiClient;
}

/** A service account whose token stands in a file, as in a pod. */
export interface ServiceAccountClient extends ClusterClient {
  readonly tokenFile: string;
  /** Writes another token into the file: a fresh one, or the text given. */
  renewToken(token?: string): Promise<void>;
}

export interface ServiceAccountOptions {
  /** Another address than the API server's own, for example that of a proxy. */
  readonly server?: string;
  /** What it may do in its namespace: rules of a Role. Roles that a controller aggregates, such as `view`, are empty here. */
  readonly rules?: readonly PolicyRule[];
}

export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** etcd and kube-apiserver of this machine, with RBAC and an authority of their own. */
export interface ControlPlane {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  readonly credentials: ClusterCredentials;
  /** A member of `system:masters`: RBAC does not bind it. */
  readonly admin: ClusterClient;
  readonly apiServer: ServerProcess;
  /**
   * Makes a service account (and its namespace) that may do nothing but what the options grant, and a client with
   * its token.
   */
  serviceAccount(
    namespace: string,
    name: string,
    options?: ServiceAccountOptions,
  ): Promise<ServiceAccountClient>;
  /** Ends the API server, waits as long as asked, starts it again on the same port and waits until it is ready. */
  restartApiServer(downMs?: number): Promise<void>;
  /** Throws away what etcd remembers of the past, so that older resource versions are gone. */
  compact(): Promise<void>;
  /** Ends everything and removes every file. May be called again. */
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  /** Of Kubernetes; the version of the tests when left out. */
  readonly version?: string;
  /** Further arguments of the API server. */
  readonly apiServerArguments?: readonly string[];
}

/**
 * Starts a control plane on free ports of 127.0.0.1: ready in a few seconds once its programs are built.
 *
 * @throws Error with the end of the logs when it is not ready within a minute; nothing is left behind then
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const etcd = await etcdBinaries(printProgress);
  const program = await kubernetesBinary(
    'kube-apiserver',
    printProgress,
    options.version ?? KUBERNETES_VERSION,
  );
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(etcd, program, options);
    } catch (error) {
      // Another process may have taken a port that was free when we looked.
      if (attempt === PORT_ATTEMPTS || !String(error).includes('address already in use')) throw error;
    }
  }
}

async function startOnce(
  etcd: { readonly server: string; readonly client: string },
  program: string,
  options: ControlPlaneOptions,
): Promise<ControlPlane> {
  const directory = await runDirectory();
  const servers: ServerProcess[] = [];
  const clients: PooledConfig[] = [];

  async function stop(): Promise<void> {
    await Promise.all(clients.splice(0).map(async (client) => await client.close()));
    // An API server whose etcd is gone lingers for minutes.
    for (const server of servers.splice(0).reverse()) await server.stop();
    await rm(directory, { recursive: true, force: true });
  }

  try {
    const credentials = await makeClusterCredentials(directory);
    const [etcdPort = 0, peerPort = 0, apiPort = 0] = await freePorts(3);
    const etcdUrl = `http://127.0.0.1:${etcdPort}`;
    servers.push(startServer('etcd', etcdCommand(etcd.server, directory, etcdUrl, peerPort), logOf('etcd')));
    const url = `https://127.0.0.1:${apiPort}`;
    const command = [
      ...apiServerCommand(program, credentials, etcdUrl, apiPort),
      ...(options.apiServerArguments ?? []),
    ];
    let apiServer = startServer('kube-apiserver', command, logOf('kube-apiserver'));
    servers.push(apiServer);

    const open = (server: string, user: Parameters<PooledConfig['config']['loadFromClusterAndUser']>[1]) => {
      const caData = Buffer.from(credentials.authority.certificate).toString('base64');
      const pool = pooledConfig((config) =>
        config.loadFromClusterAndUser({ name: 'test', server, caData, skipTLSVerify: false }, user),
      );
      clients.push(pool);
      return { ...pool, client: apiClient(pool) };
    };
    const admin = open(url, {
      name: 'admin',
      certData: Buffer.from(credentials.admin.certificate).toString('base64'),
      keyData: Buffer.from(credentials.admin.key).toString('base64'),
    });
    const ready = async (): Promise<void> => await waitUntilReady(apiPort, credentials, servers, apiServer);
    await ready();

    return {
      url,
      credentials,
      admin,
      get apiServer() {
        return apiServer;
      },
      async serviceAccount(namespace, name, { server = url, rules = [] } = {}) {
        await ensure(admin.client, '/api/v1/namespaces', { metadata: { name: namespace } });
        const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
        await ensure(admin.client, accounts, { metadata: { name } });
        await grant(admin.client, namespace, name, rules);
        const tokenFile = join(directory, `${namespace}.${name}.token`);
        const renewToken = async (token?: string): Promise<void> =>
          await writeFile(
            tokenFile,
            token ?? (await requestToken(admin.client, `${accounts}/${name}/token`)),
          );
        await renewToken();
        return { ...open(server, tokenFileUser(name, tokenFile)), tokenFile, renewToken };
      },
      async restartApiServer(downMs = 0) {
        await apiServer.stop();
        await sleep(downMs);
        servers.splice(servers.indexOf(apiServer), 1);
        apiServer = startServer('kube-apiserver', command, logOf('kube-apiserver'));
        servers.push(apiServer);
        await ready();
      },
      compact: async () => await compactEtcd(etcd.client, etcdUrl),
      stop,
    };
  } catch (error) {
    const logs = await Promise.all(servers.map(async (server) => await server.logTail()));
    await stop();
    throw new Error(`the control plane did not start: ${String(error)}\n${logs.join('\n')}`, {
      cause: error,
    });
  }

  function logOf(name: string): string {
    return join(directory, `${name}.log`);
  }
}

function etcdCommand(program: string, directory: string, url: string, peerPort: number): string[] {
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    program,
    `--data-dir=${join(directory, 'etcd')}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

function apiServerCommand(
  program: string,
  { file }: ClusterCredentials,
  etcdUrl: string,
  port: number,
): string[] {
  return [
    program,
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=Node,RBAC',
    // The endpoints of the `kubernetes` service may not be a loopback address, and nothing here needs them.
    '--endpoint-reconciler-type=none',
    `--client-ca-file=${file('ca.crt')}`,
    `--tls-cert-file=${file('server.crt')}`,
    `--tls-private-key-file=${file('server.key')}`,
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--enable-aggregator-routing=false',
  ];
}

async function waitUntilReady(
  port: number,
  credentials: ClusterCredentials,
  servers: readonly ServerProcess[],
  apiServer: ServerProcess,
): Promise<void> {
  const end = performance.now() + READY_BUDGET_MS;
  while (!(await isReady(port, credentials))) {
    for (const server of servers) server.assertRunning();
    apiServer.assertRunning();
    if (performance.now() > end) throw new Error(`the API server is not ready within ${READY_BUDGET_MS} ms`);
    await sleep(READY_POLL_MS);
  }
}

async function isReady(port: number, { authority, admin }: ClusterCredentials): Promise<boolean> {
  return await new Promise((resolve) => {
    const probe = request(
      {
        host: '127.0.0.1',
        port,
        path: '/readyz',
        ca: authority.certificate,
        cert: admin.certificate,
        key: admin.key,
        timeout: PROBE_TIMEOUT_MS,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    probe.on('timeout', () => probe.destroy());
    probe.on('error', () => resolve(false));
    probe.end();
  });
}

async function ensure(client: ApiClient, path: string, body: unknown): Promise<void> {
  await client.request({ method: 'POST', path, body }).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 409)) throw error;
  });
}

async function grant(
  client: ApiClient,
  namespace: string,
  name: string,
  rules: readonly PolicyRule[],
): Promise<void> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await ensure(client, `${rbac}/roles`, { metadata: { name }, rules });
  await ensure(client, `${rbac}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  });
}

async function requestToken(client: ApiClient, path: string): Promise<string> {
  const body = { spec: { expirationSeconds: TOKEN_SECONDS } };
  const answer = await client.request({ method: 'POST', path, body });
  return (answer as { readonly status: { readonly token: string } }).status.token;
}

async function compactEtcd(etcdctl: string, url: string): Promise<void> {
  const env = { ETCDCTL_API: '3' };
  const status = await runHostCommand([etcdctl, `--endpoints=${url}`, 'endpoint', 'status', '-w', 'json'], {
    env,
  });
  const [
    {
      Status: { header },
    },
  ] = JSON.parse(status) as [{ Status: { header: { revision: number } } }];
  await runHostCommand([etcdctl, `--endpoints=${url}`, 'compact', String(header.revision)], { env });
}
