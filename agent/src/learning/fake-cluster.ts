import { type FakeRequest, fakeStatus, startFakeApiServer } from '@runtime-enforcer/kube/fake-api-server';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';

/** The part of an API server that learning speaks to, in memory. */
export interface FakeCluster {
  readonly client: ApiClient;
  /** Method and path with query, in order of arrival; watches left out. */
  readonly requests: string[];
  /** Makes or replaces an object. `path` is that of the object. */
  put(path: string, object: Readonly<Record<string, unknown>>): KubeObject;
  get(path: string): KubeObject | undefined;
  remove(path: string): void;
  /** What a request is answered with instead; `undefined` lets it pass. */
  fault:
    | ((request: string) => { code: number; reason?: string; headers?: Record<string, string> } | undefined)
    | undefined;
  stop(): Promise<void>;
}

interface Watcher {
  readonly path: string;
  readonly label: string | null;
  readonly send: (type: string, object: unknown) => void;
}

export async function startFakeCluster(): Promise<FakeCluster> {
  const objects = new Map<string, KubeObject>();
  const watchers = new Set<Watcher>();
  const requests: string[] = [];
  let version = 0;

  const isListed = (object: KubeObject | undefined, label: string | null): boolean =>
    object !== undefined && (label === null || object.metadata.labels?.[label] !== undefined);
  const isBelow = (path: string, collection: string): boolean => {
    const [, root = '', plural = ''] = /^(.*)\/([^/]+)$/.exec(collection) ?? [];
    return (
      path.startsWith(root) &&
      path
        .slice(root.length)
        .replace(/^\/namespaces\/[^/]+\/(?=.)/, '/')
        .startsWith(`/${plural}/`)
    );
  };
  const tell = (path: string, before: KubeObject | undefined, after: KubeObject | undefined): void => {
    for (const { path: collection, label, send } of watchers) {
      if (!isBelow(path, collection)) continue;
      if (isListed(after, label)) send(isListed(before, label) ? 'MODIFIED' : 'ADDED', after);
      else if (isListed(before, label)) send('DELETED', after ?? before);
    }
  };
  const put = (path: string, given: Readonly<Record<string, unknown>>): KubeObject => {
    const [name = ''] = path.split('/').slice(-1);
    const namespace = /\/namespaces\/([^/]+)\/[^/]+\//.exec(path)?.[1];
    const before = objects.get(path);
    const metadata = {
      uid: before?.metadata.uid ?? `uid-${++version}`,
      ...(given['metadata'] as object | undefined),
      name,
      ...(namespace !== undefined && { namespace }),
      resourceVersion: String(++version),
    };
    const object: KubeObject = { ...given, metadata };
    objects.set(path, object);
    tell(path, before, object);
    return object;
  };

  const change = ({ method, url, body, reply }: FakeRequest): void => {
    const sent = body === '' ? undefined : (JSON.parse(body) as KubeObject);
    const path = method === 'POST' ? `${url.pathname}/${sent?.metadata.name ?? ''}` : url.pathname;
    const known = objects.get(path);
    if (method === 'POST' && known !== undefined) reply(409, fakeStatus(409, 'AlreadyExists'));
    else if (method === 'PUT' && known === undefined) reply(404, fakeStatus(404, 'NotFound'));
    else if (method === 'PUT' && known?.metadata.resourceVersion !== sent?.metadata.resourceVersion)
      reply(409, fakeStatus(409, 'Conflict'));
    else reply(method === 'POST' ? 201 : 200, put(path, sent ?? {}));
  };

  const read = ({ url, reply, watch, response }: FakeRequest): void => {
    const path = url.pathname;
    const label = url.searchParams.get('labelSelector');
    if (url.searchParams.has('sendInitialEvents')) {
      reply(400, fakeStatus(400, 'BadRequest'));
    } else if (url.searchParams.has('watch')) {
      const watcher = { path, label, send: watch() };
      watchers.add(watcher);
      response.on('close', () => watchers.delete(watcher));
    } else if (url.searchParams.has('limit')) {
      const items = [...objects].filter(([key, each]) => isBelow(key, path) && isListed(each, label));
      reply(200, { metadata: { resourceVersion: String(version) }, items: items.map(([, each]) => each) });
    } else {
      const known = objects.get(path);
      if (known === undefined) reply(404, fakeStatus(404, 'NotFound'));
      else reply(200, known);
    }
  };

  const server = await startFakeApiServer((request) => {
    const line = `${request.method} ${request.url.pathname}${request.url.search}`;
    if (!request.url.searchParams.has('watch')) requests.push(line);
    const fault = cluster.fault?.(line);
    if (fault !== undefined) {
      request.reply(fault.code, fakeStatus(fault.code, fault.reason ?? 'Injected'), fault.headers);
    } else if (request.method === 'GET') read(request);
    else change(request);
  });

  const cluster: FakeCluster = {
    client: server.client,
    requests,
    put,
    get: (path) => objects.get(path),
    remove(path) {
      const before = objects.get(path);
      objects.delete(path);
      tell(path, before, undefined);
    },
    fault: undefined,
    stop: async () => await server.stop(),
  };
  return cluster;
}

/** Puts a namespace, a Deployment with its ReplicaSet, and pods of it. */
export function putDeployment(
  cluster: FakeCluster,
  { namespace = 'shop', name = 'web', pods = ['web-1'] } = {},
): { readonly deployment: KubeObject; readonly replicaSet: KubeObject; readonly pods: KubeObject[] } {
  const labels = { app: name };
  const spec = { selector: { matchLabels: labels } };
  const deployment = cluster.put(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`, { spec });
  const owner = (kind: string, { metadata }: KubeObject) => [
    { apiVersion: 'apps/v1', kind, name: metadata.name, uid: metadata.uid, controller: true },
  ];
  const replicaSet = cluster.put(`/apis/apps/v1/namespaces/${namespace}/replicasets/${name}-5d59d67564`, {
    metadata: { ownerReferences: owner('Deployment', deployment) },
    spec,
  });
  return {
    deployment,
    replicaSet,
    pods: pods.map((pod) =>
      cluster.put(`/api/v1/namespaces/${namespace}/pods/${pod}`, {
        metadata: { uid: `uid-${pod}`, labels, ownerReferences: owner('ReplicaSet', replicaSet) },
        spec: { containers: [{ name: 'main' }] },
      }),
    ),
  };
}
