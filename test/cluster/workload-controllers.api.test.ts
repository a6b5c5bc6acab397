import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { collectionPath, objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from './custom-resources.ts';
import { joinNode } from './pretended-kubelets.ts';

const NAMESPACE = 'shop';
const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments' };
const REPLICA_SETS: Resource = { ...DEPLOYMENTS, plural: 'replicasets' };
const BUDGET_MS = 60_000;

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  await plane.startControllers();
  for (const namespace of [NAMESPACE, 'other']) await plane.serviceAccount(namespace, 'anyone');
  await joinNode(plane.admin.client, 'node-1');
});
afterAll(async () => await plane.stop());

async function create(resource: Resource, body: object, namespace = NAMESPACE): Promise<KubeObject> {
  const path = collectionPath(resource, namespace);
  return (await plane.admin.client.request({ method: 'POST', path, body })) as KubeObject;
}

const deployment = (name: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'main', image: 'example.org/web:1' }] },
    },
  },
});

const proposal = (name: string, ownerReferences: readonly object[]): object => ({
  apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
  kind: 'WorkloadPolicyProposal',
  metadata: { name, ownerReferences },
  spec: { rulesByContainer: { main: { executables: { allowed: ['/bin/server'] } } } },
});

interface Owned extends KubeObject {
  readonly metadata: KubeObject['metadata'] & {
    readonly ownerReferences?: readonly {
      readonly kind: string;
      readonly name: string;
      readonly uid: string;
    }[];
  };
  readonly spec?: { readonly nodeName?: string };
}

async function list(resource: Resource, app: string): Promise<readonly Owned[]> {
  const path = collectionPath(resource, NAMESPACE);
  const query = { labelSelector: `app=${app}` };
  return ((await plane.admin.client.request({ path, query })) as { readonly items: readonly Owned[] }).items;
}

async function proposalGone(name: string): Promise<void> {
  await eventually(
    `the proposal ${name} is gone`,
    async () => ((await proposalIsThere(name)) ? undefined : true),
    BUDGET_MS / 2,
  );
}

async function proposalIsThere(name: string): Promise<boolean> {
  const path = objectPath({ resource: WORKLOAD_POLICY_PROPOSALS, namespace: NAMESPACE, name });
  try {
    await plane.admin.client.request({ path });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return false;
    throw error;
  }
}

describe('a control plane with controllers', () => {
  it(
    'makes the pods of a Deployment, owned in a chain, and gives them a node',
    { timeout: BUDGET_MS },
    async () => {
      const web = await create(DEPLOYMENTS, deployment('web'));
      const pods = await eventually(
        'two pods have a node',
        async () => {
          const found = await list(PODS, 'web');
          return found.length === 2 && found.every(({ spec }) => spec?.nodeName === 'node-1')
            ? found
            : undefined;
        },
        BUDGET_MS / 2,
      );
      const [replicaSet] = await list(REPLICA_SETS, 'web');
      const { name = '', uid = '' } = replicaSet?.metadata ?? {};
      for (const pod of pods) {
        expect(pod.metadata.ownerReferences).toMatchObject([{ kind: 'ReplicaSet', name, uid }]);
      }
      expect(replicaSet?.metadata.ownerReferences).toMatchObject([
        { kind: 'Deployment', name: 'web', uid: web.metadata.uid },
      ]);
    },
  );

  it(
    'collects a proposal with the Deployment that owns it, and no other',
    { timeout: BUDGET_MS },
    async () => {
      const owner = await create(DEPLOYMENTS, deployment('owner'));
      const { uid } = owner.metadata;
      const reference = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'owner', uid };
      await create(WORKLOAD_POLICY_PROPOSALS, proposal('deploy-owner', [reference]));
      await create(WORKLOAD_POLICY_PROPOSALS, proposal('by-hand', []));
      const path = objectPath({ resource: DEPLOYMENTS, namespace: NAMESPACE, name: 'owner' });
      await plane.admin.client.request({ method: 'DELETE', path });
      await proposalGone('deploy-owner');
      // Gone they are only when a kubelet says so, and there is none.
      await eventually('the pods are marked for deletion', async () =>
        (await list(PODS, 'owner')).every(({ metadata }) => metadata['deletionTimestamp'] !== undefined)
          ? true
          : undefined,
      );
      expect(await proposalIsThere('by-hand')).toBe(true);
    },
  );

  it.each(['was never there', 'is in another namespace'])(
    'collects a proposal whose owner %s',
    async (what) => {
      const name = what.replaceAll(' ', '-');
      const stranger = await create(DEPLOYMENTS, deployment(name), 'other');
      const uid = what === 'was never there' ? 'no-such-uid' : stranger.metadata.uid;
      const forged = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid };
      await create(WORKLOAD_POLICY_PROPOSALS, proposal('forged', [forged]));
      await proposalGone('forged');
    },
    BUDGET_MS,
  );
});
