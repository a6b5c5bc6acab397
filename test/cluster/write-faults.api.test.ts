import { eventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { collectionPath, EVENTS, objectPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type ControlPlane, type ServiceAccountClient, startControlPlane } from './control-plane.ts';
import { type Fault, type FaultProxy, startFaultProxy } from './fault-proxy.ts';

const NAMESPACE = 'written-through-faults';
const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' };
const SHARED = { resource: CONFIG_MAPS, namespace: NAMESPACE, name: 'shared' };
const WRITERS = ['a', 'b', 'c', 'd'];
const ROUNDS = 12;

let plane: ControlPlane;
let proxy: FaultProxy;
let account: ServiceAccountClient;
beforeAll(async () => {
  plane = await startControlPlane();
  proxy = await startFaultProxy(plane);
  account = await plane.serviceAccount(NAMESPACE, 'writer', {
    server: proxy.url,
    rules: [
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'update'] },
      { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
    ],
  });
});
afterAll(async () => {
  await proxy.stop();
  await plane.stop();
});
afterEach(() => proxy.setFault(undefined));

const dataOf = (object: KubeObject) => object['data'] as Readonly<Record<string, string>> | undefined;

it('an optimistic update that fails in any way can be made again: none is lost, none counts twice, none undoes another', async () => {
  const path = collectionPath(CONFIG_MAPS, NAMESPACE);
  await plane.admin.client.request({
    method: 'POST',
    path,
    body: { metadata: { name: 'shared' }, data: {} },
  });
  const faults: readonly (Fault | undefined)[] = [
    ...(['lost answer', undefined, { status: 500 }, undefined, 'cut', undefined] satisfies (
      Fault | undefined
    )[]),
    ...[
      { status: 409 },
      { delayMs: 40 },
      undefined,
      { status: 429, headers: { 'retry-after': '0' } },
      undefined,
    ],
  ];
  let turn = 0;
  let lost = 0;
  proxy.setFault((request) => {
    const fault = faults[turn++ % faults.length];
    if (fault === 'lost answer' && request.startsWith('PUT')) lost++;
    return fault;
  });
  let failures = 0;
  await Promise.all(
    WRITERS.map(async (writer) => {
      for (let round = 1; round <= ROUNDS; round++) {
        /** Counts up from the round before, whichever writes of that were told to have failed. */
        const change = (current: KubeObject): KubeObject | undefined => {
          const known = Number(dataOf(current)?.[writer] ?? 0);
          if (known > round) throw new Error(`${writer} was at ${known} before ${round} was asked for`);
          if (known === round) return undefined;
          if (known !== round - 1) throw new Error(`${writer}: ${round - 1} was undone, it is ${known}`);
          return { ...current, data: { ...dataOf(current), [writer]: String(round) } };
        };
        for (;;) {
          try {
            await optimisticUpdate({ client: account.client, reference: SHARED, change });
            break;
          } catch (error) {
            if (/undone|was at/.test(String(error))) throw error;
            failures++;
          }
        }
      }
    }),
  );
  proxy.setFault(undefined);
  const shared = await account.client.request({ path: objectPath(SHARED) });
  expect(dataOf(shared as KubeObject)).toEqual(
    Object.fromEntries(WRITERS.map((writer) => [writer, String(ROUNDS)])),
  );
  expect(failures).toBeGreaterThan(5);
  expect(lost).toBeGreaterThan(0);
}, 60_000);

it.each<[string, Fault]>([
  ['answers 429', { status: 429, headers: { 'retry-after': '1' } }],
  ['answers 500', { status: 500 }],
  ['cuts connections', 'cut'],
])(
  'Events that an API server takes none of, which %s, are counted as lost, and those after it are written',
  async (name, fault) => {
    const recorder = eventRecorder({ client: account.client, component: 'agent', host: 'node-1' });
    const pod = name.replaceAll(' ', '-');
    const note = {
      subject: { apiVersion: 'v1', kind: 'Pod', namespace: NAMESPACE, name: pod, uid: pod },
      type: 'Warning',
      reason: 'ExecDenied',
      message: 'denied /bin/sh',
    } as const;
    proxy.setFault((request) => (request.includes('/events') ? fault : undefined));
    for (let i = 0; i < 3; i++) recorder.record(note);
    await recorder.flush();
    expect(recorder.counters()).toMatchObject({ written: 0, lost: 3 });
    proxy.setFault(undefined);
    recorder.record(note);
    await recorder.flush();
    expect(recorder.counters()).toMatchObject({ written: 1, lost: 3 });
    const { items } = (await plane.admin.client.request({ path: collectionPath(EVENTS, NAMESPACE) })) as {
      readonly items: readonly {
        readonly involvedObject: { readonly name: string };
        readonly count: number;
      }[];
    };
    expect(items.filter(({ involvedObject }) => involvedObject.name === pod)).toMatchObject([{ count: 1 }]);
    await recorder.stop();
  },
  30_000,
);
