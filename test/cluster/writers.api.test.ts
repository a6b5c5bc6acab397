import { eventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { type LeaseElector, leaseElector } from '@runtime-enforcer/kube/lease-elector';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import { collectionPath, EVENTS, LEASES, objectPath } from '@runtime-enforcer/kube/resource-path';
import { TerminalError, workQueue } from '@runtime-enforcer/kube/work-queue';
import { parseLabelSelector } from '@runtime-enforcer/kube/label-selector-text';
import { matchesLabels } from '@runtime-enforcer/kube/label-selector';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { type ControlPlane, type ServiceAccountClient, startControlPlane } from './control-plane.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

const NAMESPACE = 'written';
const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' };
const FAST = { leaseMs: 3_000, renewDeadlineMs: 2_000, retryMs: 200 };

let plane: ControlPlane;
let proxy: FaultProxy;
let account: ServiceAccountClient;
beforeAll(async () => {
  plane = await startControlPlane();
  proxy = await startFaultProxy(plane);
  account = await plane.serviceAccount(NAMESPACE, 'writer', {
    server: proxy.url,
    rules: [
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'update', 'list'] },
      { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
    ],
  });
});
afterAll(async () => {
  await proxy.stop();
  await plane.stop();
});

const createMap = async (name: string, data: Record<string, string>, labels: Record<string, string> = {}) =>
  await account.client.request({
    method: 'POST',
    path: collectionPath(CONFIG_MAPS, NAMESPACE),
    body: { metadata: { name, labels }, data },
  });

const dataOf = (object: KubeObject) => object['data'] as Readonly<Record<string, string>> | undefined;

describe('optimisticUpdate', () => {
  it('loses none of the changes of many writers', async () => {
    await createMap('shared', {});
    const reference = { resource: CONFIG_MAPS, namespace: NAMESPACE, name: 'shared' };
    const writers = Array.from({ length: 12 }, (_, index) => `writer-${index}`);
    await Promise.all(
      writers.map(async (writer) => {
        const change = (current: KubeObject) => ({ ...current, data: { ...dataOf(current), [writer]: 'x' } });
        for (;;) {
          try {
            return await optimisticUpdate({ client: account.client, reference, change });
          } catch (error) {
            if (!String(error).includes('changed by others')) throw error;
          }
        }
      }),
    );
    const shared = await account.client.request({ path: objectPath(reference) });
    expect(Object.keys(dataOf(shared as KubeObject) ?? {}).sort()).toEqual(writers.sort());
  });
});

describe('leaseElector', () => {
  let electors: LeaseElector[] = [];
  afterEach(async () => {
    proxy.setFault(undefined);
    await Promise.all(electors.map(async (elector) => await elector.stop()));
    electors = [];
  });

  function candidate(name: string, identity: string, client = account.client) {
    const log: string[] = [];
    const elector = leaseElector({
      client,
      namespace: NAMESPACE,
      name,
      identity,
      timings: FAST,
      onStarted: () => log.push('started'),
      onStopped: (reason) => log.push(reason),
    });
    electors.push(elector);
    elector.start();
    return { elector, log };
  }

  const leads = async (what: string, elector: LeaseElector, is = true) =>
    await eventually(what, () => (elector.isLeader() === is ? true : undefined), 15_000);

  it('elects one, hands over at once when it stops, and writes what others can read', async () => {
    const first = candidate('handed', 'first');
    await leads('the first leads', first.elector);
    const second = candidate('handed', 'second');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(second.elector.isLeader()).toBe(false);
    const from = performance.now();
    await first.elector.stop();
    await leads('the second leads', second.elector);
    expect(performance.now() - from).toBeLessThan(FAST.leaseMs);
    const path = objectPath({ resource: LEASES, namespace: NAMESPACE, name: 'handed' });
    expect(await account.client.request({ path })).toMatchObject({
      spec: {
        holderIdentity: 'second',
        leaseDurationSeconds: 3,
        leaseTransitions: 1,
        renewTime: expect.stringMatching(/\.\d{6}Z$/) as string,
      },
    });
  });

  it.each([
    ['is cut off', 'cut' as const],
    ['gets no answers', 'stall' as const],
    ['gets 500s', { status: 500 }],
  ])('a leader that %s steps down before another leads', async (name, fault) => {
    const lease = `lost-${name.replaceAll(' ', '-')}`;
    const first = candidate(lease, 'first');
    await leads('the first leads', first.elector);
    const second = candidate(lease, 'second', plane.admin.client);
    await new Promise((resolve) => setTimeout(resolve, 500));
    proxy.setFault(() => fault);
    let together = 0;
    const watching = setInterval(() => {
      if (first.elector.isLeader() && second.elector.isLeader()) together++;
    }, 5);
    await leads('the second leads', second.elector);
    clearInterval(watching);
    expect(together).toBe(0);
    expect(first.log).toEqual(['started', 'the lease was not renewed in time']);
  });

  it('a leader outlives a short restart of the API server', async () => {
    const only = candidate('restart', 'only');
    await leads('it leads', only.elector);
    await plane.restartApiServer();
    await leads('it leads again', only.elector);
  }, 60_000);
});

describe('eventRecorder', () => {
  it('writes Events that the API server takes, alike ones once with a count', async () => {
    const recorder = eventRecorder({ client: account.client, component: 'agent', host: 'node-1' });
    const subject = { apiVersion: 'v1', kind: 'Pod', namespace: NAMESPACE, name: 'web-1', uid: 'u' };
    for (let round = 0; round < 3; round++) {
      recorder.record({ subject, type: 'Warning', reason: 'ExecDenied', message: 'denied /bin/sh' });
    }
    recorder.record({ subject, type: 'Normal', reason: 'Bound', message: 'bound' });
    await recorder.flush();
    expect(recorder.counters()).toEqual({ written: 4, suppressed: 0, lost: 0 });
    const { items } = (await plane.admin.client.request({ path: collectionPath(EVENTS, NAMESPACE) })) as {
      readonly items: readonly Record<string, unknown>[];
    };
    expect(items).toHaveLength(2);
    expect(items.find(({ reason }) => reason === 'ExecDenied')).toMatchObject({
      count: 3,
      message: 'denied /bin/sh',
      source: { component: 'agent', host: 'node-1' },
    });
    await recorder.stop();
  });
});

describe('workQueue', () => {
  it('brings every key to its end through failures of the API server', async () => {
    let requests = 0;
    proxy.setFault(() => (++requests % 3 === 0 ? { status: 500 } : requests % 5 === 0 ? 'cut' : undefined));
    const failures: string[] = [];
    const queue = workQueue({
      concurrency: 3,
      backOff: { baseMs: 10, maxMs: 100, jitter: 0.5 },
      onFailure: (key, error, retryMs) => failures.push(`${key} ${String(error)} ${String(retryMs)}`),
      process: async (key) => {
        if (key === 'hopeless') throw new TerminalError('no such thing');
        await createMap(key, {}).catch((error: unknown) => {
          if (!String(error).includes('already exists')) throw error;
        });
        return undefined;
      },
    });
    queue.start();
    const keys = Array.from({ length: 20 }, (_, index) => `queued-${index}`);
    for (const key of [...keys, 'hopeless']) queue.add(key);
    await eventually('an empty queue', () => {
      const { waiting, running, delayed } = queue.depth();
      return waiting + running + delayed === 0 ? true : undefined;
    });
    proxy.setFault(undefined);
    await queue.stop();
    const { items } = (await account.client.request({ path: collectionPath(CONFIG_MAPS, NAMESPACE) })) as {
      readonly items: readonly KubeObject[];
    };
    const made = items.map(({ metadata }) => metadata.name);
    expect(keys.filter((key) => !made.includes(key))).toEqual([]);
    expect(failures.filter((failure) => failure.startsWith('hopeless'))).toEqual([
      'hopeless TerminalError: no such thing undefined',
    ]);
    expect(failures.length).toBeGreaterThan(3);
  });
});

describe('label selectors', () => {
  it.each([
    'app=web',
    'app!=web',
    'app in (web,db)',
    'app notin (web)',
    'app',
    '!app',
    'size>4',
    'size<4',
    'app=,size',
    'app=web,size>1,!none',
    '',
  ])('%j selects here what it selects there', async (text) => {
    const labelled: Record<string, Record<string, string>> = {
      'l-web-8': { app: 'web', size: '8' },
      'l-db-2': { app: 'db', size: '2' },
      'l-empty': { app: '', size: 'x' },
      'l-none': {},
    };
    for (const [name, labels] of Object.entries(labelled)) {
      await createMap(name, {}, { test: 'selectors', ...labels }).catch(() => undefined);
    }
    const labelSelector = text === '' ? 'test' : `test,${text}`;
    const path = collectionPath(CONFIG_MAPS, NAMESPACE);
    const { items } = (await account.client.request({ path, query: { labelSelector } })) as {
      readonly items: readonly KubeObject[];
    };
    const selector = parseLabelSelector(text);
    const mine = Object.keys(labelled).filter((name) => matchesLabels(selector, labelled[name]));
    expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(mine.sort());
  });
});
