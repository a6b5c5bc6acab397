import { type KubeObject, objectKey, withoutManagedFields } from '@runtime-enforcer/kube/kube-object';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { type Reflector, type ReflectorOptions, reflector } from '@runtime-enforcer/kube/reflector';
import { collectionPath, objectPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { type ControlPlane, type ServiceAccountClient, startControlPlane } from './control-plane.ts';
import { testedKubernetesMinor } from './kubernetes-binary.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' };
const NAMESPACE = 'watched';
const CHANGE_BUDGET_MS = 20_000;
/** The first minor version of Kubernetes 1, of those that are tested, that sends first objects in a watch. */
const FIRST_MINOR_WITH_WATCH_LIST = 34;
const servesWatchList = testedKubernetesMinor() >= FIRST_MINOR_WITH_WATCH_LIST;

let plane: ControlPlane;
let proxy: FaultProxy;
let account: ServiceAccountClient;
beforeAll(async () => {
  plane = await startControlPlane();
  proxy = await startFaultProxy(plane);
  account = await plane.serviceAccount(NAMESPACE, 'watcher', {
    server: proxy.url,
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }],
  });
});
afterAll(async () => {
  await proxy.stop();
  await plane.stop();
});

let names: string[] = [];
beforeEach(() => {
  names = [];
});
let running: Reflector[] = [];
afterEach(async () => {
  proxy.setFault(undefined);
  await Promise.all(running.map(async (each) => await each.stop()));
  running = [];
  for (const name of names) await remove(name).catch(() => undefined);
});

async function put(name: string, value: string): Promise<void> {
  const body = { metadata: { name }, data: { value } };
  if (names.includes(name)) {
    await plane.admin.client.request({
      method: 'PUT',
      path: objectPath({ resource: CONFIG_MAPS, namespace: NAMESPACE, name }),
      body,
    });
    return;
  }
  names.push(name);
  await plane.admin.client.request({ method: 'POST', path: collectionPath(CONFIG_MAPS, NAMESPACE), body });
}

async function remove(name: string): Promise<void> {
  names = names.filter((each) => each !== name);
  await plane.admin.client.request({
    method: 'DELETE',
    path: objectPath({ resource: CONFIG_MAPS, namespace: NAMESPACE, name }),
  });
}

function reflect(options: Partial<ReflectorOptions<KubeObject, never>> = {}) {
  const store = objectStore<KubeObject>({ transform: withoutManagedFields });
  const changes: string[] = [];
  const troubles: string[] = [];
  const mine = reflector<KubeObject>({
    client: account.client,
    resource: CONFIG_MAPS,
    namespace: NAMESPACE,
    store,
    onChange: ({ type, key }) => changes.push(`${type} ${key}`),
    onTrouble: (error) => troubles.push(String(error)),
    ...options,
    timings: { backOff: { baseMs: 100, maxMs: 1_000, jitter: 1 }, stableMs: 1_000, ...options.timings },
  });
  running.push(mine);
  mine.start();
  return { reflector: mine, store, changes, troubles };
}

const value = (object: KubeObject | undefined): unknown =>
  (object?.['data'] as Readonly<Record<string, unknown>> | undefined)?.['value'];

/** Changes an object behind the proxy and waits until a store has it. */
async function arrives(
  store: ReturnType<typeof reflect>['store'],
  name: string,
  text: string,
): Promise<void> {
  await put(name, text);
  await eventually(
    `${name}=${text} in the store`,
    () => (value(store.get(`${NAMESPACE}/${name}`)) === text ? true : undefined),
    CHANGE_BUDGET_MS,
  );
}

describe.each(['watch', 'list'] as const)('a reflector whose first objects come by %s', (initial) => {
  it('holds what is there, and follows every change', async () => {
    await put('before', '1');
    const { reflector: mine, store, changes } = reflect({ initial });
    await mine.synced;
    expect(value(store.get(`${NAMESPACE}/before`))).toBe('1');
    await arrives(store, 'before', '2');
    await arrives(store, 'new', '1');
    await remove('before');
    await eventually('deletion', () => (store.get(`${NAMESPACE}/before`) === undefined ? true : undefined));
    expect(changes.filter((change) => change.endsWith('before') || change.endsWith('new'))).toEqual([
      'added watched/before',
      'updated watched/before',
      'added watched/new',
      'deleted watched/before',
    ]);
    // A server that sends no first objects in a watch refuses it, and is asked for a list.
    const watches = initial === 'watch' && !servesWatchList ? 2 : 1;
    expect(mine.counters()).toMatchObject({ lists: 1, watches, failures: 0 });
    expect(store.get(`${NAMESPACE}/new`)?.metadata['managedFields']).toBeUndefined();
  });

  it('holds more than a page', async () => {
    const many = Array.from({ length: 1_100 }, (_, index) => `many-${index}`);
    for (let start = 0; start < many.length; start += 50) {
      await Promise.all(many.slice(start, start + 50).map(async (name) => await put(name, 'x')));
    }
    const { reflector: mine, store } = reflect({ initial });
    await mine.synced;
    for (const name of many) expect(store.get(`${NAMESPACE}/${name}`)).toBeDefined();
    await plane.admin.client.request({ method: 'DELETE', path: collectionPath(CONFIG_MAPS, NAMESPACE) });
    names = [];
    await eventually('all gone', () => (store.size === 0 ? true : undefined), CHANGE_BUDGET_MS);
  });
});

describe('a reflector behind faults', () => {
  it('goes on after a broken connection, without a new list', async () => {
    const { reflector: mine, store } = reflect();
    await mine.synced;
    for (let round = 0; round < 3; round++) {
      proxy.cutAll();
      await arrives(store, 'cut', String(round));
    }
    expect(mine.counters().lists).toBe(1);
    expect(mine.counters().failures).toBeGreaterThanOrEqual(1);
  });

  it('finds a stalled connection by its own deadline', async () => {
    const { reflector: mine, store, troubles } = reflect({ timings: { silenceMs: 1_000 } });
    // The first may come in a list; what comes after it comes in the watch that is to be stalled.
    await arrives(store, 'stalled', '0');
    await arrives(store, 'stalled', '1');
    proxy.stallAll();
    await arrives(store, 'stalled', '2');
    expect(mine.counters().silences).toBeGreaterThanOrEqual(1);
    expect(troubles.join()).toContain('nothing came for 1000 ms');
  });

  it('asks for everything again after 410, and tells only differences', async () => {
    await put('kept', '1');
    await put('goes', '1');
    const { reflector: mine, store, changes } = reflect();
    await mine.synced;
    const before = changes.length;
    // While the reflector is kept away, one object goes, one comes, and etcd forgets how.
    proxy.setFault(() => 'cut');
    proxy.cutAll();
    await remove('goes');
    await put('comes', '1');
    let refusals = 0;
    proxy.setFault((request) => {
      if (!request.includes('resourceVersion=')) return undefined;
      refusals++;
      return { status: 410, body: { kind: 'Status', code: 410, reason: 'Expired' } };
    });
    await eventually(
      'the difference',
      () => (changes.length >= before + 2 ? true : undefined),
      CHANGE_BUDGET_MS,
    );
    expect(changes.slice(before).sort()).toEqual(['added watched/comes', 'deleted watched/goes']);
    expect(refusals).toBeGreaterThan(0);
    expect(mine.counters()).toMatchObject({ lists: 2 });
    proxy.setFault(undefined);
    await arrives(store, 'kept', '2');
  });

  it('honours Retry-After', async () => {
    proxy.setFault(() => ({ status: 429, headers: { 'retry-after': '2' } }));
    const from = proxy.requests.length;
    const { reflector: mine } = reflect();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(proxy.requests.length - from).toBe(1);
    proxy.setFault(undefined);
    await mine.synced;
  });

  it('outlives a time of 500s without a hot loop', async () => {
    const { reflector: mine, store } = reflect();
    await mine.synced;
    proxy.setFault(() => ({ status: 500 }));
    proxy.cutAll();
    const from = proxy.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(proxy.requests.length - from).toBeLessThan(15);
    proxy.setFault(undefined);
    await arrives(store, 'after-500', '1');
  });

  it('reads a token that is no longer taken again from its file', async () => {
    await account.renewToken('not-a-token');
    account.tokens.expire();
    const { reflector: mine, troubles } = reflect();
    await eventually('refused', () =>
      troubles.some((trouble) => trouble.includes('401')) ? true : undefined,
    );
    await account.renewToken();
    await mine.synced;
  });

  it('shares connections between watches and requests', async () => {
    const { reflector: mine } = reflect();
    await mine.synced;
    const from = proxy.connections();
    for (let index = 0; index < 100; index++) {
      await account.client.request({ path: collectionPath(CONFIG_MAPS, NAMESPACE) });
    }
    expect(proxy.connections() - from).toBeLessThanOrEqual(2);
  });
});

describe('a reflector and the life of the control plane', () => {
  it('goes on after the API server has been restarted', async () => {
    const { reflector: mine, store } = reflect({ client: plane.admin.client });
    await mine.synced;
    await plane.restartApiServer(1_000);
    await arrives(store, 'restarted', '1');
    expect(store.get(objectKey({ metadata: { namespace: NAMESPACE, name: 'restarted' } }))).toBeDefined();
  }, 60_000);

  it('goes on after an API server that did not answer for a while', async () => {
    const { reflector: mine, store } = reflect({ timings: { silenceMs: 1_000 } });
    await mine.synced;
    plane.apiServer.pause();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    plane.apiServer.resume();
    await arrives(store, 'paused', '1');
    expect(mine.counters().silences).toBeGreaterThanOrEqual(1);
  }, 60_000);

  it('goes on when etcd has forgotten the versions between', async () => {
    const { reflector: mine, store, changes } = reflect();
    await mine.synced;
    proxy.setFault(() => 'cut');
    proxy.cutAll();
    for (let index = 0; index < 10; index++) await put('compacted', String(index));
    await plane.compact();
    // The watch cache of a fresh API server knows nothing older than its start.
    await plane.restartApiServer();
    proxy.setFault(undefined);
    await arrives(store, 'compacted', 'last');
    expect(changes.filter((change) => change === 'added watched/compacted')).toHaveLength(1);
    expect(mine.counters().gone).toBeGreaterThanOrEqual(1);
  }, 60_000);
});
