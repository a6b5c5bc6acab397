import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { printProgress } from '../vm/progress.ts';
import { type ClusterCredentials, issueUserCertificate } from './cluster-credentials.ts';
import { type KubernetesProgram, kubernetesBinary } from './kubernetes-binary.ts';
import { freePorts } from './port.ts';
import { type ServerProcess, startServer } from './server-process.ts';
import { waitUntilReady } from './server-ready.ts';

const PORT_ATTEMPTS = 3;

/** Of the control plane that the controllers are to belong to. */
export interface ControllersPlace {
  readonly url: string;
  /** Of Kubernetes. */
  readonly version: string;
  readonly directory: string;
  readonly credentials: ClusterCredentials;
  /** The servers of the control plane; each that is started here is added, whatever happens next. */
  readonly servers: ServerProcess[];
}

interface Controller {
  readonly program: KubernetesProgram;
  readonly readyPath: string;
  readonly argumentsFor: (credentials: ClusterCredentials) => readonly string[];
}

const CONTROLLERS: readonly Controller[] = [
  {
    program: 'kube-controller-manager',
    readyPath: '/healthz',
    argumentsFor: ({ file }) => [
      `--root-ca-file=${file('ca.crt')}`,
      `--service-account-private-key-file=${file('sa.key')}`,
      // Each controller with its own account, as clusters have it: what RBAC forbids one, it cannot do.
      '--use-service-account-credentials=true',
      // Meant to spare API servers that others need too.
      '--kube-api-qps=500',
      '--kube-api-burst=500',
    ],
  },
  { program: 'kube-scheduler', readyPath: '/readyz', argumentsFor: () => [] },
];

/**
 * Starts kube-controller-manager and kube-scheduler, each as the user that RBAC's default roles are made for, and
 * waits until both are ready.
 *
 * @throws Error with the end of its log when one is not ready within a minute
 */
export async function startWorkloadControllers(place: ControllersPlace): Promise<void> {
  await Promise.all(
    CONTROLLERS.map(async (controller) => {
      for (let attempt = 1; ; attempt++) {
        try {
          await startController(controller, place);
          return;
        } catch (error) {
          // Another process may have taken a port that was free when we looked.
          if (attempt === PORT_ATTEMPTS || !String(error).includes('address already in use')) throw error;
        }
      }
    }),
  );
}

async function startController(controller: Controller, place: ControllersPlace): Promise<void> {
  const { program, readyPath } = controller;
  const { directory, credentials, servers } = place;
  const binary = await kubernetesBinary(program, printProgress, place.version);
  const kubeconfig = join(directory, `${program}.kubeconfig`);
  await writeFile(kubeconfig, await kubeconfigFor(`system:${program}`, place), { mode: 0o600 });
  const [port = 0] = await freePorts(1);
  const server = startServer(
    program,
    [
      binary,
      `--kubeconfig=${kubeconfig}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--tls-cert-file=${credentials.file('server.crt')}`,
      `--tls-private-key-file=${credentials.file('server.key')}`,
      '--leader-elect=false',
      ...controller.argumentsFor(credentials),
    ],
    join(directory, `${program}.log`),
  );
  servers.push(server);
  try {
    await waitUntilReady(program, { port, path: readyPath, ca: credentials.authority.certificate }, [server]);
  } catch (error) {
    await server.stop('SIGKILL');
    servers.splice(servers.indexOf(server), 1);
    throw new Error(`${String(error)}\n${await server.logTail()}`, { cause: error });
  }
}

/** A kubeconfig, as JSON, with which a program is a user of the cluster. */
async function kubeconfigFor(user: string, { url, credentials }: ControllersPlace): Promise<string> {
  const { certificate, key } = await issueUserCertificate(credentials.authority, user);
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const caData = base64(credentials.authority.certificate);
  const name = 'test';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: url, 'certificate-authority-data': caData } }],
    users: [
      {
        name,
        user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}
