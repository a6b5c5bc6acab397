import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, PODS } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { chartObjects, createAll } from './chart-objects.ts';

const NAMESPACE = 'shop';
/** Creating pods is left to Kubernetes' own controllers, which take some seconds. */
const BUDGET_MS = 30_000;

let plane: ControlPlane;
let client: ApiClient;
beforeAll(async () => {
  plane = await startControlPlane();
  ({ client } = plane.admin);
  await installCustomResources(client);
  await plane.serviceAccount(NAMESPACE, 'default');
  await plane.startControllers();
});
afterAll(async () => await plane.stop());

const template = (restartPolicy: string) => ({
  metadata: { labels: { app: 'x' } },
  spec: { containers: [{ name: 'app', image: 'app' }], restartPolicy },
});
const selector = { matchLabels: { app: 'x' } };
const always = template('Always');

/** Each kind of workload, and its policy. */
const WORKLOADS: readonly (readonly [string, string, object])[] = [
  ['apps', 'deployments', { metadata: { name: 'web' }, spec: { replicas: 2, selector, template: always } }],
  ['apps', 'replicasets', { metadata: { name: 'lone' }, spec: { replicas: 1, selector, template: always } }],
  [
    'apps',
    'statefulsets',
    { metadata: { name: 'db' }, spec: { serviceName: 'db', replicas: 1, selector, template: always } },
  ],
  ['batch', 'jobs', { metadata: { name: 'once' }, spec: { template: template('Never') } }],
  [
    'batch',
    'cronjobs',
    {
      metadata: { name: 'nightly' },
      spec: { schedule: '* * * * *', jobTemplate: { spec: { template: template('Never') } } },
    },
  ],
];

const post = async (path: string, body: object) => await client.request({ method: 'POST', path, body });

async function labels(): Promise<Map<string, string | undefined>> {
  const { items } = (await client.request({ path: collectionPath(PODS, NAMESPACE) })) as {
    readonly items: readonly KubeObject[];
  };
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.labels?.[POLICY_LABEL]]));
}

async function policy(name: string): Promise<void> {
  await post(collectionPath(WORKLOAD_POLICIES, NAMESPACE), {
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name },
    spec: { mode: 'monitor', binding: { autoBind: true } },
  });
}

describe('auto-bind with the real controllers', () => {
  it(
    'binds new pods of every kind of workload, and leaves those that run alone',
    { timeout: 180_000 },
    async () => {
      await post(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, WORKLOADS[0]?.[2] ?? {});
      const before = await eventually(
        'the pods of the Deployment are there',
        async () => {
          const found = await labels();
          return found.size === 2 ? found : undefined;
        },
        BUDGET_MS,
      );
      expect([...before.values()]).toEqual([undefined, undefined]);

      for (const name of ['deploy-web', 'rs-lone', 'sts-db', 'job-once', 'cronjob-nightly'])
        await policy(name);
      await createAll(client, await chartObjects('admission/auto-bind.yaml'));
      await eventually('it is in force', async () => {
        const body = {
          metadata: {
            name: 'probe',
            ownerReferences: [
              { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u', controller: true },
            ],
          },
          spec: always.spec,
        };
        const query = { dryRun: 'All' };
        const made = await client.request({
          method: 'POST',
          path: collectionPath(PODS, NAMESPACE),
          query,
          body,
        });
        return (made as KubeObject).metadata.labels?.[POLICY_LABEL];
      });
      for (const [group, plural, body] of WORKLOADS.slice(1)) {
        await post(`/apis/${group}/v1/namespaces/${NAMESPACE}/${plural}`, body);
      }
      await client.request({
        method: 'PATCH',
        path: `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/web`,
        patchType: 'application/merge-patch+json',
        body: { spec: { replicas: 4 } },
      });
      const expected = {
        'web-': 'deploy-web',
        'lone-': 'rs-lone',
        'db-': 'sts-db',
        'once-': 'job-once',
        // The next full minute.
        'nightly-': 'cronjob-nightly',
      };
      const after = await eventually(
        'a pod of each workload is there',
        async () => {
          const found = await labels();
          const fresh = [...found.keys()].filter((name) => !before.has(name));
          const isComplete = Object.keys(expected).every((prefix) =>
            fresh.some((name) => name.startsWith(prefix)),
          );
          return isComplete && found.size >= 8 ? found : undefined;
        },
        90_000,
      );
      for (const [name, label] of after) {
        const wanted = Object.entries(expected).find(([prefix]) => name.startsWith(prefix))?.[1];
        expect([name, label]).toEqual([name, before.has(name) ? undefined : wanted]);
      }
    },
  );
});
