import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, apiClient } from '@runtime-enforcer/kube/api-client';
import { type PooledConfig, pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { tokenFileUser } from '@runtime-enforcer/kube/token-file';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { runDirectory } from '../vm/run-directory.ts';
import { apiServerCommand, etcdCommand } from './api-server.ts';
import { type ClusterCredentials, makeClusterCredentials } from './cluster-credentials.ts';
import { etcdBinaries } from './etcd-binary.ts';
import { kubernetesBinary, testedKubernetesVersion } from './kubernetes-binary.ts';
import { freePorts } from './port.ts';
import { type ServerProcess, startServer } from './server-process.ts';
import { waitUntilReady } from './server-ready.ts';
import { ensureServiceAccount, type Grants, requestToken } from './service-account.ts';
import { startWorkloadControllers } from './workload-controllers.ts';

const PORT_ATTEMPTS = 3;

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

export interface ServiceAccountOptions extends Grants {
  /** Another address than the API server's own, for example that of a proxy. */
  readonly server?: string;
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
  /**
   * Starts kube-controller-manager and kube-scheduler, where they do not run yet, and waits until they are ready:
   * for tests that need workloads' pods or the collection of garbage. Install CRDs before: whose owners are looked
   * after is found out at the start and then every half minute.
   */
  startControllers(): Promise<void>;
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
  /** Of the API server, besides 127.0.0.1: it then listens on all addresses of its network namespace. */
  readonly addresses?: readonly string[];
  /** Of the API server; a free one when left out. */
  readonly port?: number;
}

/**
 * Starts a control plane on free ports of 127.0.0.1: ready in a few seconds once its programs are built.
 *
 * @throws Error with the end of the logs when it is not ready within a minute; nothing is left behind then
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const etcd = await etcdBinaries(printProgress);
  const version = options.version ?? testedKubernetesVersion();
  const program = await kubernetesBinary('kube-apiserver', printProgress, version);
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(etcd, program, version, options);
    } catch (error) {
      // Another process may have taken a port that was free when we looked.
      if (attempt === PORT_ATTEMPTS || !String(error).includes('address already in use')) throw error;
    }
  }
}

async function startOnce(
  etcd: { readonly server: string; readonly client: string },
  program: string,
  version: string,
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
    const credentials = await makeClusterCredentials(directory, options.addresses);
    const [etcdPort = 0, peerPort = 0, freePort = 0] = await freePorts(3);
    const apiPort = options.port ?? freePort;
    const etcdUrl = `http://127.0.0.1:${etcdPort}`;
    servers.push(startServer('etcd', etcdCommand(etcd.server, directory, etcdUrl, peerPort), logOf('etcd')));
    const url = `https://127.0.0.1:${apiPort}`;
    const command = [
      ...apiServerCommand(program, credentials, etcdUrl, apiPort),
      ...(options.addresses === undefined ? [] : ['--bind-address=0.0.0.0']),
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
    const asAdmin = {
      ca: credentials.authority.certificate,
      cert: credentials.admin.certificate,
      key: credentials.admin.key,
    };
    const admin = open(url, {
      name: 'admin',
      certData: Buffer.from(credentials.admin.certificate).toString('base64'),
      keyData: Buffer.from(credentials.admin.key).toString('base64'),
    });
    const ready = async (): Promise<void> =>
      await waitUntilReady('the API server', { port: apiPort, path: '/readyz', ...asAdmin }, servers);
    await ready();
    let controllers: Promise<void> | undefined;

    return {
      url,
      credentials,
      admin,
      get apiServer() {
        return apiServer;
      },
      async serviceAccount(namespace, name, { server = url, ...grants } = {}) {
        await ensureServiceAccount(admin.client, namespace, name, grants);
        const tokenFile = join(directory, `${namespace}.${name}.token`);
        const renewToken = async (token?: string): Promise<void> =>
          await writeFile(tokenFile, token ?? (await requestToken(admin.client, namespace, name)));
        await renewToken();
        return { ...open(server, tokenFileUser(name, tokenFile)), tokenFile, renewToken };
      },
      async startControllers() {
        controllers ??= startWorkloadControllers({ url, version, directory, credentials, servers });
        await controllers;
      },
      async restartApiServer(downMs = 0) {
        await apiServer.stop();
        await sleep(downMs);
        const place = servers.indexOf(apiServer);
        apiServer = startServer('kube-apiserver', command, logOf('kube-apiserver'));
        servers[place] = apiServer;
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
