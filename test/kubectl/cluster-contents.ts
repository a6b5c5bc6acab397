import { API_VERSION } from '@runtime-enforcer/api/keys';
import { createPromotion, type Promotion } from '@runtime-enforcer/controller/promotion/promotion-loop';
import { keptEvents, SILENT_LOG } from '@runtime-enforcer/controller/testing/silent';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import { isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';

const CORE = { group: '', version: 'v1' };
export const PODS: Resource = { ...CORE, plural: 'pods' };
export const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments' };

type Fields = Readonly<Record<string, unknown>>;

/** Allowed paths by container. */
export type Lists = Readonly<Record<string, readonly string[]>>;

/** Puts objects into one namespace as their makers would, without asking the plugin. */
export interface ClusterContents {
  policy(
    name: string,
    lists: Lists,
    more?: { spec?: Fields; status?: Fields; metadata?: Fields },
  ): Promise<KubeObject>;
  proposal(name: string, lists: Lists, more?: { status?: Fields; metadata?: Fields }): Promise<KubeObject>;
  pod(
    name: string,
    more?: { labels?: Fields; containers?: readonly string[]; metadata?: Fields },
  ): Promise<KubeObject>;
  /** @param more `template`: labels of its pods besides */
  deployment(
    name: string,
    more?: { labels?: Fields; template?: Fields; containers?: readonly string[] },
  ): Promise<KubeObject>;
  get(resource: Resource, name: string): Promise<KubeObject | undefined>;
  remove(resource: Resource, name: string): Promise<void>;
}

export async function clusterContents(client: ApiClient, namespace: string): Promise<ClusterContents> {
  await ignoreConflict(
    client.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } }),
  );
  await ignoreConflict(
    client.request({
      method: 'POST',
      path: `/api/v1/namespaces/${namespace}/serviceaccounts`,
      body: { metadata: { name: 'default' } },
    }),
  );

  async function create(resource: Resource, body: Fields, status?: Fields): Promise<KubeObject> {
    const created = objectIn(
      await client.request({ method: 'POST', path: collectionPath(resource, namespace), body }),
    );
    if (status === undefined) return created;
    const { name } = created.metadata;
    const path = objectPath({ resource, namespace, name, subresource: 'status' });
    return objectIn(await client.request({ method: 'PUT', path, body: { ...created, status } }));
  }

  return {
    policy: async (name, lists, { spec = {}, status, metadata = {} } = {}) =>
      await create(
        WORKLOAD_POLICIES,
        {
          apiVersion: API_VERSION,
          kind: 'WorkloadPolicy',
          metadata: { name, ...metadata },
          spec: { mode: 'monitor', rulesByContainer: rules(lists), ...spec },
        },
        status,
      ),
    proposal: async (name, lists, { status, metadata = {} } = {}) =>
      await create(
        WORKLOAD_POLICY_PROPOSALS,
        {
          apiVersion: API_VERSION,
          kind: 'WorkloadPolicyProposal',
          metadata: { name, ...metadata },
          spec: { rulesByContainer: rules(lists) },
        },
        status,
      ),
    pod: async (name, { labels = {}, containers = ['app'], metadata = {} } = {}) =>
      await create(PODS, {
        metadata: { name, labels, ...metadata },
        spec: { nodeName: 'node-1', containers: containers.map(container) },
      }),
    deployment: async (name, { labels = {}, template = {}, containers = ['app'] } = {}) =>
      await create(DEPLOYMENTS, {
        metadata: { name, labels },
        spec: {
          replicas: 3,
          selector: { matchLabels: { app: name } },
          template: {
            metadata: { labels: { app: name, ...template } },
            spec: { containers: containers.map(container) },
          },
        },
      }),
    async get(resource, name) {
      try {
        return objectIn(await client.request({ path: objectPath({ resource, namespace, name }) }));
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) return undefined;
        throw error;
      }
    },
    async remove(resource, name) {
      await client.request({
        method: 'DELETE',
        path: objectPath({ resource, namespace, name }),
        query: { gracePeriodSeconds: 0 },
      });
    },
  };
}

/** The part of the controller that makes policies from labelled proposals, with an administrator's rights. */
export function startPromotion(client: ApiClient): Promotion {
  const promotion = createPromotion({ client, events: keptEvents().recorder, log: SILENT_LOG });
  promotion.start();
  return promotion;
}

/** A violation as the controller writes it into a policy's status. */
export function violation(id: number, executablePath: string, more: Fields = {}): Fields {
  return {
    id,
    podName: 'web-0',
    containerName: 'app',
    executablePath,
    nodeName: 'node-1',
    action: 'monitor',
    occurrences: 1,
    firstObservedTimestamp: '2026-01-01T00:00:00Z',
    lastObservedTimestamp: '2026-01-02T00:00:00Z',
    reason: 'Unlisted',
    ...more,
  };
}

/** A status with these violations. */
export function violationStatus(violations: readonly Fields[]): Fields {
  return {
    phase: 'Ready',
    totalNodes: 1,
    successfulNodes: 1,
    violationCount: violations.length,
    activeViolationCount: violations.length,
    violations,
  };
}

function rules(lists: Lists): Fields {
  return Object.fromEntries(
    Object.entries(lists).map(([name, allowed]) => [name, { executables: { allowed } }]),
  );
}

function container(name: string): Fields {
  return { name, image: 'example.invalid/app:1' };
}

function objectIn(json: unknown): KubeObject {
  if (!isKubeObject(json)) throw new Error('the answer is no object');
  return json;
}

async function ignoreConflict(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.code !== 409) throw error;
  });
}
