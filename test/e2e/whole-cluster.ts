import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CertifiedKey, createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';
import { issueUserCertificate } from '../cluster/cluster-credentials.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { pluginRunner, type PluginRunner } from '../kubectl/plugin-runner.ts';
import { eventually } from '../runtime/eventually.ts';
import { runDirectory } from '../vm/run-directory.ts';
import { API_SERVICE_ADDRESS, connectNode, HOST_ADDRESS } from './cluster-network.ts';
import { type GuestNode, startGuestNode } from './guest-node.ts';
import { NODE_NAME } from './node-files.ts';
import { serveServiceNames } from './service-names.ts';

const API_PORT = 443;
const VALID_FOR_MS = 86_400_000;
const NODE_READY_BUDGET_MS = 180_000;
/** The ring says where the node's disk is: it is made where the network still reaches. */
export const DISK_VARIABLE = 'RUNTIME_ENFORCER_E2E_DISK';
/** And where the containerd of {@link WholeClusterOptions} is. */
export const CONTAINERD_VARIABLE = 'RUNTIME_ENFORCER_E2E_CONTAINERD';

/** What a cluster may have that others have not. */
export interface WholeClusterOptions {
  /** The node has a containerd whose NRI validator is on, instead of Debian's. */
  readonly hasValidator?: true;
}

/** A cluster of one node: the control plane on the host, kubelet and containerd in a guest. */
export interface WholeCluster {
  readonly plane: ControlPlane;
  readonly node: GuestNode;
  /** A person with kubectl and the plugin. */
  readonly user: PluginRunner;
  /** Ends everything, and removes every file. */
  stop(): Promise<void>;
}

/**
 * Starts the cluster in the network namespace of this process, and waits until the node is ready.
 *
 * @param namespace of the user's kubeconfig
 * @throws Error with what the node said when it is not ready in time; nothing is left behind then
 */
export async function startWholeCluster(
  namespace: string,
  options: WholeClusterOptions = {},
): Promise<WholeCluster> {
  const disk = given(DISK_VARIABLE);
  const containerd = options.hasValidator === true ? given(CONTAINERD_VARIABLE) : undefined;
  const stops: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    connectNode();
    const directory = await runDirectory();
    stops.push(async () => await rm(directory, { recursive: true, force: true }));
    const kubeletAuthority = await authority();
    const plane = await startControlPlane({
      addresses: [HOST_ADDRESS, API_SERVICE_ADDRESS],
      port: API_PORT,
      apiServerArguments: await kubeletClientArguments(directory, kubeletAuthority),
    });
    stops.push(async () => await plane.stop());
    stops.push(await serveServiceNames(plane.admin.client));
    const node = await startGuestNode({
      ...{ disk, kubeletAuthority, kubeconfig: await kubeletKubeconfig(plane) },
      ...(containerd !== undefined && { containerd }),
    });
    stops.push(async () => await node.stop());
    await plane.startControllers();
    const user = await pluginRunner(plane, namespace);
    stops.push(async () => await user.stop());
    await nodeIsReady(plane, node);
    return { plane, node, user, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function given(variable: string): string {
  const value = process.env[variable];
  if (value === undefined) throw new Error(`${variable} is not set: run npm run test:e2e`);
  return value;
}

async function authority(): Promise<CertifiedKey> {
  return await createAuthority({ commonName: 'kubelet', now: new Date(), validForMs: VALID_FOR_MS });
}

/** By which the API server reaches kubelet, and webhooks in pods without kube-proxy. */
async function kubeletClientArguments(
  directory: string,
  kubeletAuthority: CertifiedKey,
): Promise<readonly string[]> {
  const client = await issueCertificate(kubeletAuthority, {
    ...{ commonName: 'kube-apiserver-kubelet-client', organizations: ['system:masters'] },
    ...{ usages: ['client'], now: new Date(), validForMs: VALID_FOR_MS },
  });
  const files = {
    'kubelet-ca.crt': kubeletAuthority.certificate,
    'kubelet-client.crt': client.certificate,
    'kubelet-client.key': client.key,
  };
  for (const [name, text] of Object.entries(files))
    await writeFile(join(directory, name), text, { mode: 0o600 });
  return [
    `--advertise-address=${HOST_ADDRESS}`,
    '--allow-privileged=true',
    '--enable-aggregator-routing=true',
    '--kubelet-preferred-address-types=InternalIP',
    `--kubelet-certificate-authority=${join(directory, 'kubelet-ca.crt')}`,
    `--kubelet-client-certificate=${join(directory, 'kubelet-client.crt')}`,
    `--kubelet-client-key=${join(directory, 'kubelet-client.key')}`,
  ];
}

async function kubeletKubeconfig({ credentials }: ControlPlane): Promise<string> {
  const { certificate, key } = await issueUserCertificate(credentials.authority, `system:node:${NODE_NAME}`, [
    'system:nodes',
  ]);
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const cluster = {
    server: `https://${HOST_ADDRESS}:${API_PORT}`,
    'certificate-authority-data': base64(credentials.authority.certificate),
  };
  const user = { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) };
  const name = 'node';
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': name },
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  });
}

interface NodeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

async function nodeIsReady({ admin }: ControlPlane, node: GuestNode): Promise<void> {
  let seen = 'there is no Node object';
  await eventually(
    () => `the node is ready; ${seen}; it said:\n${node.output.join('\n')}`,
    async () => {
      node.assertRunning();
      const object = (await admin.client
        .request({ path: `/api/v1/nodes/${NODE_NAME}` })
        .catch(() => undefined)) as NodeObject | undefined;
      seen = JSON.stringify(object?.status?.conditions);
      return object?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ===
        true
        ? true
        : undefined;
    },
    NODE_READY_BUDGET_MS,
  );
}
