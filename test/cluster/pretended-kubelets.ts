import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isConflict, isNotFound } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath, objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';

const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
const LOOK_MS = 200;
/** Well below the 50 s after which a node that is silent is taken for dead. */
const HEARTBEAT_MS = 10_000;

/** Nodes on which every pod runs as soon as it is scheduled there, and ends when it is deleted. */
export interface PretendedKubelets {
  /** Where all pods are reached; none when undefined. Counts for pods that start afterwards. */
  podAddress: string | undefined;
  stop(): Promise<void>;
}

/** Tells the API server what the kubelets of these nodes would tell. Nothing is executed. */
export async function pretendKubelets(
  client: ApiClient,
  nodes: readonly string[],
): Promise<PretendedKubelets> {
  for (const node of nodes) await joinNode(client, node);
  const ended = new AbortController();
  const { signal } = ended;
  const kubelets = {
    podAddress: undefined as string | undefined,
    async stop() {
      ended.abort();
      await running;
    },
  };
  const running = serve();
  return kubelets;

  async function serve(): Promise<void> {
    let beatAtMs = 0;
    while (!signal.aborted) {
      if (performance.now() - beatAtMs > HEARTBEAT_MS) {
        beatAtMs = performance.now();
        for (const node of nodes) await beat(client, node);
      }
      const { objects } = await pagedList(client, { path: collectionPath(PODS), query: {} });
      for (const pod of objects) await settle(client, pod, kubelets.podAddress);
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** A node as its kubelet would report it. */
export async function joinNode(client: ApiClient, name: string): Promise<void> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
  await client.request({ method: 'POST', path: collectionPath(NODES), body: node });
  await beat(client, name, {
    allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
    nodeInfo: { containerRuntimeVersion: 'containerd://2.2.1' },
  });
}

async function beat(client: ApiClient, name: string, more: object = {}): Promise<void> {
  const now = new Date().toISOString();
  const status = {
    ...more,
    conditions: [
      { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastHeartbeatTime: now },
    ],
  };
  await client.request({
    method: 'PATCH',
    path: objectPath({ resource: NODES, name, subresource: 'status' }),
    patchType: 'application/merge-patch+json',
    body: { status },
  });
}

async function settle(client: ApiClient, pod: KubeObject, address: string | undefined): Promise<void> {
  const { name, namespace = '', deletionTimestamp } = pod.metadata;
  const { spec, status } = pod;
  if (!isJsonObject(spec) || typeof spec['nodeName'] !== 'string') return;
  const phase = isJsonObject(status) ? status['phase'] : undefined;
  const reference = { resource: PODS, namespace, name };
  try {
    if (deletionTimestamp !== undefined) {
      await client.request({
        method: 'DELETE',
        path: objectPath(reference),
        query: { gracePeriodSeconds: 0 },
      });
    } else if (phase === 'Pending') {
      await client.request({
        method: 'PATCH',
        path: objectPath({ ...reference, subresource: 'status' }),
        patchType: 'application/merge-patch+json',
        body: { status: runningStatus(pod, spec, address) },
      });
    }
  } catch (error) {
    // Somebody else was quicker.
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}

function runningStatus(
  { metadata: { uid } }: KubeObject,
  spec: Readonly<Record<string, unknown>>,
  podIP: string | undefined,
) {
  const now = new Date().toISOString();
  const containers = (spec['containers'] ?? []) as readonly { readonly name: string }[];
  return {
    phase: 'Running',
    startTime: now,
    ...(podIP !== undefined && { podIP, podIPs: [{ ip: podIP }] }),
    conditions: ['Initialized', 'ContainersReady', 'Ready', 'PodScheduled'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: now,
    })),
    containerStatuses: containers.map((container) => ({
      ...{ name: container.name, image: 'pretended', imageID: '', restartCount: 0 },
      ...{ ready: true, started: true, state: { running: { startedAt: now } } },
      containerID: `containerd://${uid ?? ''}-${container.name}`,
    })),
  };
}
