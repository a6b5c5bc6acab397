import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueCertificate } from '@runtime-enforcer/certs/authority';
import { accountKubeconfig } from '../cluster/account-kubeconfig.ts';
import type { ControlPlane } from '../cluster/control-plane.ts';
import { freePorts } from '../cluster/port.ts';
import { type ServerProcess, startServer } from '../cluster/server-process.ts';
import { eventually } from '../runtime/eventually.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { chartObjects, createAll, withWebhooksAt } from './chart-objects.ts';

export const CONTROLLER_NAMESPACE = 'runtime-enforcer';
export const CONTROLLER_ACCOUNT = 'runtime-enforcer-controller';

const MAIN = join(REPOSITORY, 'controller/src/main.ts');
const READY_BUDGET_MS = 60_000;
const VALID_FOR_MS = 3_600_000;

/** Where controllers of one test keep what they are started with. */
export interface ControllerPlace {
  /**
   * @param options.account its service account
   * @param options.server where it finds the API server, if not at its own address
   * @param options.args besides those that every controller needs
   * @param options.command runs it; by default its sources are run
   */
  start(options?: {
    account?: string;
    server?: string;
    args?: readonly string[];
    command?: readonly string[];
  }): Promise<ControllerProcess>;
  /** Has the API server ask this controller's webhooks. */
  installWebhooks(controller: ControllerProcess): Promise<void>;
  /** Ends all that run. */
  stopAll(): Promise<void>;
  /** Ends all of them, and removes their files. */
  stop(): Promise<void>;
}

export interface ControllerProcess extends ServerProcess {
  readonly webhookPort: number;
  readonly metricsPort: number;
  readonly healthPort: number;
  /** Resolved when it answers that it is ready. */
  ready(): Promise<void>;
}

/** Reads a controller's metrics as who has the token, or as nobody. */
export async function readMetrics(
  plane: ControlPlane,
  { metricsPort }: ControllerProcess,
  token?: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = Promise.withResolvers<IncomingMessage>();
  request(
    {
      ...{ host: '127.0.0.1', port: metricsPort, path: '/metrics', agent: false },
      ca: plane.credentials.authority.certificate,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    },
    answer.resolve,
  )
    .on('error', answer.reject)
    .end();
  const response = await answer.promise;
  const chunks = (await response.toArray()) as Buffer[];
  return { status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() };
}

/** Installs the chart's accounts and roles, so that every controller runs with just these. */
export async function controllerPlace(plane: ControlPlane): Promise<ControllerPlace> {
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-controller-'));
  const processes: ControllerProcess[] = [];
  const { authority } = plane.credentials;
  const certificate = await issueCertificate(authority, {
    commonName: 'controller',
    dnsNames: ['controller'],
    ipAddresses: ['127.0.0.1'],
    usages: ['server', 'client'],
    now: new Date(),
    validForMs: VALID_FOR_MS,
  });
  await writeFile(join(directory, 'tls.crt'), certificate.certificate);
  await writeFile(join(directory, 'tls.key'), certificate.key);
  await writeFile(join(directory, 'ca.crt'), authority.certificate);
  await plane.serviceAccount(CONTROLLER_NAMESPACE, 'default');
  await createAll(plane.admin.client, await chartObjects('controller/rbac.yaml'));

  async function stopAll(): Promise<void> {
    await Promise.all(processes.map(async (each) => await each.stop()));
  }

  return {
    async start({
      account = CONTROLLER_ACCOUNT,
      server: apiServer,
      args = [],
      command = [process.execPath, MAIN],
    } = {}) {
      const [webhookPort = 0, metricsPort = 0, healthPort = 0] = await freePorts(3);
      const name = `controller-${processes.length}`;
      const kubeconfig = await accountKubeconfig(
        plane,
        directory,
        { namespace: CONTROLLER_NAMESPACE, name: account },
        apiServer === undefined ? {} : { server: apiServer },
      );
      const argv = [
        'env',
        `POD_NAME=${name}`,
        `POD_NAMESPACE=${CONTROLLER_NAMESPACE}`,
        ...command,
        `--kubeconfig=${kubeconfig}`,
        `--webhook-cert-path=${directory}`,
        `--wp-status-reconciler-agent-grpc-mtls-cert-dir=${directory}`,
        `--webhook-bind-address=127.0.0.1:${webhookPort}`,
        `--metrics-bind-address=127.0.0.1:${metricsPort}`,
        `--health-probe-bind-address=127.0.0.1:${healthPort}`,
        '--wp-status-reconciler-update-interval=1s',
        ...args,
      ];
      const server = startServer(name, argv, join(directory, `${name}.log`));
      const ready = async (): Promise<void> => {
        try {
          await eventually(
            `${name} is ready`,
            async () => {
              server.assertRunning();
              return (await statusOf(healthPort, '/readyz')) === 200 ? true : undefined;
            },
            READY_BUDGET_MS,
          );
        } catch (error) {
          throw new Error(`${String(error)}\n${await server.logTail()}`, { cause: error });
        }
      };
      const started = { ...server, webhookPort, metricsPort, healthPort, ready };
      processes.push(started);
      return started;
    },
    async installWebhooks({ webhookPort }) {
      const configurations = await chartObjects('controller/webhooks.yaml');
      await createAll(
        plane.admin.client,
        configurations.map((each) => withWebhooksAt(each, webhookPort, authority.certificate)),
      );
    },
    stopAll,
    async stop() {
      await stopAll();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function statusOf(port: number, path: string): Promise<number | undefined> {
  return await new Promise((resolve) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', () => resolve(undefined));
  });
}
