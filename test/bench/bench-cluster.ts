import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { type FaultProxy, startFaultProxy } from '../cluster/fault-proxy.ts';
import { requestToken } from '../cluster/service-account.ts';
import { agentGrants } from '../node/agent-rules.ts';
import type { HostContainer } from './host-containers.ts';
import { policyResource, WORKLOAD_CONTAINER, WORKLOAD_NAMESPACE, workloadLists } from './workload.ts';

export const AGENT_NAMESPACE = 'runtime-enforcer';
export const AGENT_POD = 'agent-x';
const NODE = 'bench-node';
const HASH = '5d59d67564';
/** Policies that are on their way to the API server at once. */
const CREATED_AT_ONCE = 32;
const VALID_MS = 3_600_000;

/** What an agent needs to reach the API server and to serve controllers. */
export interface AgentAccess {
  readonly kubeconfig: string;
  /** `tls.crt`, `tls.key` and `ca.crt` of the agent. */
  readonly certificates: string;
  /** The same of a controller. */
  readonly controllerCertificates: string;
  /** By which all of them were issued, as PEM. */
  readonly authority: string;
  readonly nodeName: string;
}

/** A real API server with everything that an agent of this bench asks it for. */
export interface BenchCluster {
  readonly plane: ControlPlane;
  /** What agents that do not reach the API server directly have asked of it. */
  readonly requests: readonly string[];
  /** Files for an agent, whose requests are counted or go to the API server directly. */
  access(directory: string, way: 'counted' | 'direct'): Promise<AgentAccess>;
  /** Makes policies of the workload, from number `first` on, until there are `end`. */
  createPolicies(first: number, end: number): Promise<void>;
  /** Makes the container's pod in the API, of a Deployment of its own: what the runtime is to tell of it from now on. */
  deploy(container: HostContainer): Promise<HostContainer>;
  stop(): Promise<void>;
}

interface Made {
  readonly metadata: { readonly name: string; readonly uid: string };
}

export async function startBenchCluster(): Promise<BenchCluster> {
  const plane = await startControlPlane();
  let proxy: FaultProxy | undefined;
  const stop = async (): Promise<void> => {
    await proxy?.stop();
    await plane.stop();
  };
  try {
    proxy = await startFaultProxy(plane);
    return await furnish(plane, proxy, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function furnish(
  plane: ControlPlane,
  proxy: FaultProxy,
  stop: () => Promise<void>,
): Promise<BenchCluster> {
  const { client } = plane.admin;
  await installCustomResources(client);
  await plane.serviceAccount(AGENT_NAMESPACE, 'agent', await agentGrants());
  const make = async (path: string, body: object): Promise<Made> =>
    (await client.request({ method: 'POST', path, body })) as Made;
  await plane.serviceAccount(WORKLOAD_NAMESPACE, 'default');
  await plane.serviceAccount(AGENT_NAMESPACE, 'default');
  await makeOwnPod(make);

  return {
    plane,
    requests: proxy.requests,
    stop,
    access: async (directory, way) =>
      await writeAccess(plane, way === 'counted' ? proxy.url : plane.url, directory),
    async createPolicies(first, end) {
      const path = collectionPath(WORKLOAD_POLICIES, WORKLOAD_NAMESPACE);
      const bodies = Array.from(workloadLists(end), (allowed, number) =>
        policyResource(`policy-${number}`, allowed, 'protect'),
      ).slice(first);
      const work = async (): Promise<void> => {
        for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) await make(path, body);
      };
      await Promise.all(Array.from({ length: CREATED_AT_ONCE }, work));
    },
    async deploy({ pod, container }) {
      const labels = { app: pod.name };
      const templateLabels = { ...labels, 'pod-template-hash': HASH };
      const apps = `/apis/apps/v1/namespaces/${WORKLOAD_NAMESPACE}`;
      const deployment = await make(`${apps}/deployments`, {
        metadata: { name: pod.name },
        spec: workloadSpec(labels),
      });
      const replicaSet = await make(`${apps}/replicasets`, {
        metadata: { name: `${pod.name}-${HASH}`, ownerReferences: [ownedBy('Deployment', deployment)] },
        spec: workloadSpec(templateLabels),
      });
      const { metadata } = await make(`/api/v1/namespaces/${WORKLOAD_NAMESPACE}/pods`, {
        metadata: {
          name: `${pod.name}-${HASH}-aaaaa`,
          labels: templateLabels,
          ownerReferences: [ownedBy('ReplicaSet', replicaSet)],
        },
        spec: { ...POD_SPEC, nodeName: NODE },
      });
      const allLabels = new Map([...pod.labels, ...Object.entries(templateLabels)]);
      return { container, pod: { ...pod, name: metadata.name, uid: metadata.uid, labels: allLabels } };
    },
  };
}

/** The agent's own pod and the DaemonSet that it is of. */
async function makeOwnPod(make: (path: string, body: object) => Promise<Made>): Promise<void> {
  const labels = { app: 'agent' };
  const daemonSet = await make(`/apis/apps/v1/namespaces/${AGENT_NAMESPACE}/daemonsets`, {
    metadata: { name: 'agent' },
    spec: workloadSpec(labels),
  });
  await make(`/api/v1/namespaces/${AGENT_NAMESPACE}/pods`, {
    metadata: { name: AGENT_POD, labels, ownerReferences: [ownedBy('DaemonSet', daemonSet)] },
    spec: { ...POD_SPEC, nodeName: NODE },
  });
}

async function writeAccess(plane: ControlPlane, server: string, directory: string): Promise<AgentAccess> {
  const now = new Date();
  const authority = await createAuthority({ commonName: 'bench', now, validForMs: VALID_MS });
  const files = async (name: string, dnsName: string, usage: 'client' | 'server'): Promise<string> => {
    const { certificate, key } = await issueCertificate(authority, {
      ...{ commonName: dnsName, dnsNames: [dnsName], usages: [usage], now, validForMs: VALID_MS },
    });
    const place = join(directory, name);
    await mkdir(place, { recursive: true });
    await writeFile(join(place, 'tls.crt'), certificate);
    await writeFile(join(place, 'tls.key'), key, { mode: 0o600 });
    await writeFile(join(place, 'ca.crt'), authority.certificate);
    return place;
  };
  const token = await requestToken(plane.admin.client, AGENT_NAMESPACE, 'agent');
  const ca = Buffer.from(plane.credentials.authority.certificate).toString('base64');
  const kubeconfig = join(directory, 'kubeconfig');
  const name = 'bench';
  await writeFile(
    kubeconfig,
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': name },
      clusters: [{ name, cluster: { server, 'certificate-authority-data': ca } }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    }),
    { mode: 0o600 },
  );
  return {
    kubeconfig,
    certificates: await files('agent-certificates', `${AGENT_POD}.${AGENT_NAMESPACE}`, 'server'),
    controllerCertificates: await files('controller-certificates', 'controller', 'client'),
    authority: authority.certificate,
    nodeName: NODE,
  };
}

function ownedBy(kind: string, { metadata }: Made): object {
  return { apiVersion: 'apps/v1', kind, name: metadata.name, uid: metadata.uid, controller: true };
}

const POD_SPEC = {
  automountServiceAccountToken: false,
  containers: [{ name: WORKLOAD_CONTAINER, image: 'bench/image:1' }],
};

function workloadSpec(labels: Readonly<Record<string, string>>): object {
  return { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: POD_SPEC } };
}
