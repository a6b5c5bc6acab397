import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';

const APPS = { group: 'apps', version: 'v1' } as const;
const BATCH = { group: 'batch', version: 'v1' } as const;
const DEPLOYMENTS: Resource = { ...APPS, plural: 'deployments' };
const REPLICA_SETS: Resource = { ...APPS, plural: 'replicasets' };
const STATEFUL_SETS: Resource = { ...APPS, plural: 'statefulsets' };
export const DAEMON_SETS: Resource = { ...APPS, plural: 'daemonsets' };
const JOBS: Resource = { ...BATCH, plural: 'jobs' };
const CRON_JOBS: Resource = { ...BATCH, plural: 'cronjobs' };

/** What stands before a workload's name in that of its proposal. */
export type WorkloadPrefix = 'deploy' | 'sts' | 'ds' | 'cronjob';

/** Workloads with a pod each, as controllers would make them, where none run. */
export interface SyntheticWorkloads {
  create(resource: Resource, body: object, namespace: string): Promise<KubeObject>;
  /** The workload, whatever stands between it and its pods, and the pod. */
  pod(namespace: string, app: string, prefix: WorkloadPrefix): Promise<KubeObject>;
}

export const podTemplate = (app: string, restartPolicy: 'Always' | 'Never' = 'Always') => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'app' }], restartPolicy },
});
export const selecting = (app: string) => ({
  selector: { matchLabels: { app } },
  template: podTemplate(app),
});
export const ownedBy = (apiVersion: string, kind: string, { metadata: { name, uid } }: KubeObject) => ({
  ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
});

/** @param client may create all of it */
export function syntheticWorkloads(client: ApiClient): SyntheticWorkloads {
  async function create(resource: Resource, body: object, namespace: string): Promise<KubeObject> {
    const path = collectionPath(resource, namespace);
    return (await client.request({ method: 'POST', path, body })) as KubeObject;
  }

  /** A Job selects its pods by its own uid. */
  async function labelsOf({ metadata }: KubeObject, namespace: string): Promise<object> {
    const path = objectPath({ resource: JOBS, namespace, name: metadata.name });
    const { spec } = (await client.request({ path })) as {
      readonly spec: { readonly selector: { readonly matchLabels: object } };
    };
    return spec.selector.matchLabels;
  }

  async function ownerOf(namespace: string, app: string, prefix: WorkloadPrefix) {
    const named = { metadata: { name: app } };
    switch (prefix) {
      case 'deploy': {
        const deployment = await create(DEPLOYMENTS, { ...named, spec: selecting(app) }, namespace);
        const metadata = { name: `${app}-5d59d67564`, ...ownedBy('apps/v1', 'Deployment', deployment) };
        const set = await create(REPLICA_SETS, { metadata, spec: selecting(app) }, namespace);
        return { owners: ownedBy('apps/v1', 'ReplicaSet', set), labels: {} };
      }
      case 'sts': {
        const set = await create(STATEFUL_SETS, { ...named, spec: selecting(app) }, namespace);
        return { owners: ownedBy('apps/v1', 'StatefulSet', set), labels: {} };
      }
      case 'ds': {
        const set = await create(DAEMON_SETS, { ...named, spec: selecting(app) }, namespace);
        return { owners: ownedBy('apps/v1', 'DaemonSet', set), labels: {} };
      }
      case 'cronjob': {
        const spec = { template: podTemplate(app, 'Never') };
        const cronSpec = { schedule: '0 0 1 1 *', jobTemplate: { spec } };
        const cron = await create(CRON_JOBS, { ...named, spec: cronSpec }, namespace);
        const metadata = { name: `${app}-29000000`, ...ownedBy('batch/v1', 'CronJob', cron) };
        const job = await create(JOBS, { metadata, spec }, namespace);
        return { owners: ownedBy('batch/v1', 'Job', job), labels: await labelsOf(job, namespace) };
      }
    }
  }

  return {
    create,
    async pod(namespace, app, prefix) {
      const { owners, labels } = await ownerOf(namespace, app, prefix);
      const metadata = { name: `${app}-1`, labels: { app, ...labels }, ...owners };
      return await create(PODS, { ...podTemplate(app), metadata }, namespace);
    },
  };
}
