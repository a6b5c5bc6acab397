import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import {
  collectionPath,
  NAMESPACES,
  objectPath,
  PODS,
  type Resource,
} from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentGrants } from '../node/agent-rules.ts';
import { eventually } from '../runtime/eventually.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from './custom-resources.ts';
import { allowedIn, localLearner, type LocalLearner } from './local-learner.ts';

const NAMESPACE = 'shop';
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes' };
const BUDGET_MS = 30_000;
/** A CronJob starts its Job with the minute. */
const CRON_BUDGET_MS = 100_000;

let plane: ControlPlane;
let local: LocalLearner;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  await plane.startControllers();
  await plane.serviceAccount(NAMESPACE, 'anyone');
  const metadata = { labels: { learn: 'yes' } };
  await patch({ resource: NAMESPACES, name: NAMESPACE }, { metadata });
  await joinNode('node-1');
  const { client } = await plane.serviceAccount('enforcer', 'agent', await agentGrants());
  local = localLearner(client, '{"matchLabels":{"learn":"yes"}}');
  await local.learner.start();
});
afterAll(async () => {
  await local.learner.stop();
  await plane.stop();
});

async function patch(reference: Parameters<typeof objectPath>[0], body: object): Promise<void> {
  const path = objectPath(reference);
  await plane.admin.client.request({
    method: 'PATCH',
    path,
    patchType: 'application/merge-patch+json',
    body,
  });
}

/** A DaemonSet has no pods without one. */
async function joinNode(name: string): Promise<void> {
  await create(NODES, { metadata: { name } }, undefined);
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }];
  const status = { allocatable: { cpu: '4', memory: '8Gi', pods: '110' }, conditions };
  await patch({ resource: NODES, name, subresource: 'status' }, { status });
}

async function create(
  resource: Resource,
  body: object,
  namespace: string | undefined = NAMESPACE,
): Promise<KubeObject> {
  const path = collectionPath(resource, resource === NODES ? undefined : namespace);
  return (await plane.admin.client.request({ method: 'POST', path, body })) as KubeObject;
}

async function podOf(app: string, budgetMs = BUDGET_MS): Promise<KubeObject> {
  return await eventually(
    `a pod of ${app}`,
    async () => {
      const path = collectionPath(PODS, NAMESPACE);
      const query = { labelSelector: `app=${app}` };
      const { items } = (await plane.admin.client.request({ path, query })) as {
        readonly items: KubeObject[];
      };
      return items.find(({ metadata }) => metadata['deletionTimestamp'] === undefined);
    },
    budgetMs,
  );
}

async function proposalOf(name: string): Promise<KubeObject | undefined> {
  const path = collectionPath(WORKLOAD_POLICY_PROPOSALS, NAMESPACE);
  const { items } = (await plane.admin.client.request({ path })) as { readonly items: KubeObject[] };
  return items.find(({ metadata }) => metadata.name === name);
}

/** Lets the pod run something, and waits until its proposal lists it. */
async function learnFrom({ metadata }: KubeObject, name: string): Promise<KubeObject> {
  local.exec({ namespace: NAMESPACE, podName: metadata.name, podUid: metadata.uid ?? '' }, '/bin/server');
  return await eventually(`the proposal ${name}`, async () => {
    const proposal = await proposalOf(name);
    return allowedIn(proposal).includes('/bin/server') ? proposal : undefined;
  });
}

const podTemplate = (app: string, more: object = {}) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'example.org/web:1' }], ...more },
});
const selecting = (app: string) => ({ selector: { matchLabels: { app } }, template: podTemplate(app) });
const job = (app: string) => ({ template: podTemplate(app, { restartPolicy: 'Never' }) });
const APPS = { group: 'apps', version: 'v1' } as const;
const BATCH = { group: 'batch', version: 'v1' } as const;

describe('pods that Kubernetes made', () => {
  it.each([
    ['Deployment', { ...APPS, plural: 'deployments' }, 'deploy', selecting],
    ['ReplicaSet', { ...APPS, plural: 'replicasets' }, 'rs', selecting],
    ['StatefulSet', { ...APPS, plural: 'statefulsets' }, 'sts', selecting],
    ['DaemonSet', { ...APPS, plural: 'daemonsets' }, 'ds', selecting],
    ['Job', { ...BATCH, plural: 'jobs' }, 'job', job],
    [
      'CronJob',
      { ...BATCH, plural: 'cronjobs' },
      'cronjob',
      (app: string) => ({ schedule: '* * * * *', jobTemplate: { spec: job(app) } }),
    ],
  ])(
    'of a %s are learned for it, and its proposal belongs to it',
    async (kind, resource, prefix, spec) => {
      const app = `of-${prefix}`;
      const { metadata } = await create(resource, { metadata: { name: app }, spec: spec(app) });
      const proposal = await learnFrom(await podOf(app, CRON_BUDGET_MS), `${prefix}-${app}`);
      const apiVersion = `${resource.group}/v1`;
      expect(proposal.metadata['ownerReferences']).toEqual([
        { apiVersion, kind, name: app, uid: metadata.uid, controller: true },
      ]);
    },
    CRON_BUDGET_MS + BUDGET_MS,
  );

  it(
    'of a Deployment that took the place of another are learned anew',
    async () => {
      const resource: Resource = { ...APPS, plural: 'deployments' };
      const first = await create(resource, { metadata: { name: 'again' }, spec: selecting('again') });
      await learnFrom(await podOf('again'), 'deploy-again');
      const path = objectPath({ resource, namespace: NAMESPACE, name: 'again' });
      await plane.admin.client.request({
        method: 'DELETE',
        path,
        query: { propagationPolicy: 'Background' },
      });
      const second = await create(resource, { metadata: { name: 'again' }, spec: selecting('again') });
      expect(second.metadata.uid).not.toBe(first.metadata.uid);
      const pod = await eventually('a pod of the second', async () => {
        const found = await podOf('again');
        const owners = found.metadata['ownerReferences'] as readonly { readonly uid: string }[];
        const sets = objectPath({
          resource: { ...APPS, plural: 'replicasets' },
          namespace: NAMESPACE,
          name: nameOf(owners),
        });
        const set = (await plane.admin.client.request({ path: sets })) as KubeObject;
        // The replica sets of both have one name, and pods of the first may still be there.
        const isOwn = owners.some(({ uid }) => uid === set.metadata.uid);
        const isSecond = JSON.stringify(set.metadata['ownerReferences']).includes(second.metadata.uid ?? '');
        return isOwn && isSecond ? found : undefined;
      });
      const place = { namespace: NAMESPACE, podName: pod.metadata.name, podUid: pod.metadata.uid ?? '' };
      local.exec(place, '/bin/second');
      const proposal = await eventually('its proposal', async () => {
        const found = await proposalOf('deploy-again');
        return allowedIn(found).includes('/bin/second') ? found : undefined;
      });
      expect(proposal.metadata['ownerReferences']).toMatchObject([{ uid: second.metadata.uid }]);
      expect(allowedIn(proposal)).toEqual(['/bin/second']);
    },
    2 * BUDGET_MS,
  );
});

function nameOf(owners: readonly object[]): string {
  const [owner] = owners as readonly { readonly name: string }[];
  return owner?.name ?? '';
}
