import { setTimeout as sleep } from 'node:timers/promises';
import { POLICY_LABEL, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { RunningProgram } from '../containers/running-programs.ts';
import type { ExecEvent } from '../kernel/enforcer.ts';
import { fakeContainer, fakeEvent, fakeKey, fakeReporting, fakeSeen } from '../node/fake-kernel.ts';
import { createCumulativeLog, type KeptLog } from '../violations/cumulative-log.ts';
import { type ClusterLearner, createClusterLearner } from './cluster-learner.ts';
import { type FakeCluster, putDeployment, startFakeCluster } from './fake-cluster.ts';
import { parseLearningSelector } from './learning-selector.ts';

const PROPOSALS = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop/workloadpolicyproposals';
const POLICY = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop/workloadpolicies/deploy-web';
const WEB = `${PROPOSALS}/deploy-web`;
const SELECTED = { metadata: { labels: { learn: 'yes' } } };
const FAST = {
  writer: {
    ...{
      gatherMs: 10,
      intervalMs: 30,
      writesPerSecond: 200,
      burst: 5,
      brokenMs: 50,
      endingMs: 50,
      promotedMs: 50,
    },
    ...{ freshMs: 60_000, backOff: { baseMs: 10, maxMs: 50, jitter: 0 }, flushMs: 500 },
  },
  watches: { backOff: { baseMs: 10, maxMs: 50, jitter: 0 } },
};

let cluster: FakeCluster;
let reporting: ReturnType<typeof fakeReporting>;
let observations: KeptLog<NodeObservation>;
let promoted: Set<string>;
/** How often it was asked whether a workload has its policy: once for each path that is looked at. */
let asked: number;
let present: BoundContainer[];
let programs: Map<string, RunningProgram[]>;
let learner: ClusterLearner;
beforeEach(async () => {
  cluster = await startFakeCluster();
  cluster.put('/api/v1/namespaces/shop', SELECTED);
  reporting = fakeReporting();
  observations = createCumulativeLog<NodeObservation>({ incarnation: 'i' });
  promoted = new Set();
  asked = 0;
  present = [];
  programs = new Map();
});
afterEach(async () => {
  await learner.stop();
  await cluster.stop();
});

async function start(more: { freshMs?: number; writesPerSecond?: number } = {}): Promise<void> {
  learner = createClusterLearner({
    ...{ client: cluster.client, nodeName: 'node-1', observations, now: () => 5_000 },
    ...{ log: reporting.log, counters: reporting.counters },
    selector: parseLearningSelector('{"matchLabels":{"learn":"yes"}}') ?? [],
    isPromoted: (namespace, name) => {
      asked++;
      return promoted.has(`${namespace}/${name}`);
    },
    containers: () => present,
    readRunning: (container) => Promise.resolve(programs.get(container.containerId) ?? []),
    timings: { ...FAST, writer: { ...FAST.writer, ...more } },
  });
  await learner.start();
}

function container(podName: string, more: Partial<BoundContainer> = {}): BoundContainer {
  const ids = { containerId: `c-${podName}`, podUid: `uid-${podName}` };
  const made = fakeContainer({ podName, ...ids, state: 'learning', ...more });
  present.push(made);
  return made;
}

function learned(from: BoundContainer, path: string, more: Partial<ExecEvent> = {}): ExecEvent {
  return fakeEvent(from, {
    ...{ kind: 'learned', key: fakeKey(`${from.containerId} ${path}`), mode: undefined, reason: undefined },
    ...{ path: new TextEncoder().encode(path), origin: 'entrypoint' },
    ...more,
  });
}

async function until<T>(what: string, read: () => T | undefined | false): Promise<T> {
  for (let turn = 0; turn < 300; turn++) {
    const found = read();
    if (found !== undefined && found !== false) return found;
    await sleep(10);
  }
  throw new Error(`not within three seconds: ${what}\n${JSON.stringify(reporting.lines)}`);
}

function object(path: string): KubeObject {
  const found = cluster.get(path);
  if (found === undefined) throw new Error(`no ${path}`);
  return found;
}

function allowed(path = WEB, name = 'main'): readonly string[] {
  const spec = cluster.get(path)?.['spec'] as
    { rulesByContainer?: Record<string, { executables: { allowed: string[] } }> } | undefined;
  return spec?.rulesByContainer?.[name]?.executables.allowed ?? [];
}

const has = (path: string) => () => allowed().includes(path);
/** Long enough for anything to have been written. */
const settled = async (): Promise<void> => await sleep(250);
const proposals = (): string[] => cluster.requests.filter((line) => line.startsWith('POST'));
const counter = (name: Parameters<typeof reporting.counters.value>[0]): number =>
  reporting.counters.value(name);

describe('learning into proposals', () => {
  it('makes a proposal with a complete owner reference, and adds what comes later', async () => {
    const { deployment } = putDeployment(cluster, { pods: ['web-1', 'web-2'] });
    await start();
    const first = container('web-1');
    learner.events([learned(first, '/bin/server'), learned(first, '/bin/sh')]);
    await until('a proposal', has('/bin/sh'));
    expect(cluster.get(WEB)?.metadata['ownerReferences']).toEqual([
      {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
        ...{ uid: deployment.metadata.uid, controller: true },
      },
    ]);
    const side = container('web-2', { containerId: 'side', containerName: 'side' });
    learner.events([learned(side, '/bin/proxy'), learned(first, '/bin/late')]);
    await until('more paths', () => has('/bin/late')() && allowed(WEB, 'side').length > 0);
    expect(allowed()).toEqual(['/bin/server', '/bin/sh', '/bin/late']);
    expect(allowed(WEB, 'side')).toEqual(['/bin/proxy']);
    expect(
      cluster.requests.filter((line) => line.includes('PUT')).every((line) => line.includes('fieldManager=')),
    ).toBe(true);
    await until('the answers of the API', () => learner.state().waiting === 0);
    expect(learner.state()).toMatchObject({ waiting: 0, followed: 4, observations: 4 });
  });

  it('does not look again at all that waits whenever a path comes', async () => {
    putDeployment(cluster, { pods: ['web-1'] });
    await start();
    const web = container('web-1');
    learner.events([learned(web, '/bin/first')]);
    await until('a proposal', has('/bin/first'));
    const paths = Array.from({ length: 90 }, (_, index) => `/bin/${index}`);
    asked = 0;
    for (const path of paths) {
      learner.events([learned(web, path)]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until('all paths', has('/bin/89'));
    await settled();
    // As it comes, when its proposal is written, and a few times for each write.
    expect(asked).toBeGreaterThanOrEqual(paths.length);
    expect(asked).toBeLessThan(6 * paths.length);
  });

  it('offers evidence that adds up, with pods, origin and node', async () => {
    putDeployment(cluster, { pods: ['web-1', 'web-2'] });
    const probe = { name: 'main', livenessProbe: { exec: { command: ['cat', '/tmp/x'] } } };
    const pod = object('/api/v1/namespaces/shop/pods/web-1');
    cluster.put('/api/v1/namespaces/shop/pods/web-1', { ...pod, spec: { containers: [probe] } });
    await start();
    const [one, two] = [container('web-1'), container('web-2')];
    learner.events([learned(one, '/bin/server'), learned(two, '/bin/server', { timeMs: 500 })]);
    learner.events([
      learned(one, '/usr/bin/cat', { origin: 'exec' }),
      learned(one, '/usr/bin/id', { origin: 'exec' }),
    ]);
    await until('observations', () => observations.sequence >= 3);
    learner.counts([
      fakeSeen(one, `${one.containerId} /bin/server`, 4n, { mode: undefined, lastMs: 60_000 }),
      fakeSeen(one, 'c9 unknown', 9n, { mode: undefined }),
    ]);
    await settled();
    learner.counted(new Set());
    const newest = new Map(
      [...observations.entries()].map(({ value }) => [value.executablePath as string, value]),
    );
    expect(newest.get('/bin/server')).toEqual({
      ...{ namespace: 'shop', proposal: 'deploy-web', containerName: 'main', executablePath: '/bin/server' },
      ...{ count: 5, firstSeen: '1970-01-01T00:00:00.500Z', lastSeen: '1970-01-01T00:01:00.000Z' },
      ...{ origins: ['entrypoint'], pods: ['web-1', 'web-2'], nodes: ['node-1'] },
    });
    expect(newest.get('/usr/bin/cat')?.origins).toEqual(['probe']);
    expect(newest.get('/usr/bin/id')?.origins).toEqual(['exec']);
    expect(observations.entries().every(({ ended }) => ended)).toBe(true);
    expect(learner.state().observations).toBe(0);
  });

  it('takes what already runs where learning begins, and not what no list can hold', async () => {
    putDeployment(cluster);
    const web = container('web-1');
    const program = { pid: 1, kind: 'file' as const, otherMountNamespace: false };
    const path = (text: string): Uint8Array => new TextEncoder().encode(text);
    programs.set(web.containerId, [
      { ...program, path: path('/bin/server') },
      { ...program, path: path('/bin/gone'), kind: 'deleted' },
      { ...program, path: path('/bin/elsewhere'), otherMountNamespace: true },
    ]);
    await start();
    await until('what runs', has('/bin/server'));
    learner.events([
      learned(web, '/usr/bin/hidden', { reason: 'Memfd' }),
      learned(web, 'relative'),
      learned(container('web-1', { containerId: 'odd', containerName: 'Not A Name' }), '/bin/a'),
    ]);
    await settled();
    expect(allowed()).toEqual(['/bin/server']);
    expect([...observations.values()][0]?.[1].origins).toEqual(['snapshot']);
  });

  it('stops at 100 paths, says so once, counts the rest, and goes on with those', async () => {
    putDeployment(cluster);
    await start();
    const web = container('web-1');
    learner.events(Array.from({ length: 130 }, (_, index) => learned(web, `/bin/${index}`)));
    await until('a full proposal', () => allowed().length === 100);
    learner.events(Array.from({ length: 50 }, (_, index) => learned(web, `/tmp/${index}`)));
    await settled();
    expect(allowed()).toHaveLength(100);
    expect(counter('learned_paths_refused')).toBe(80);
    expect(reporting.lines.filter(({ message }) => message.includes('it is full'))).toHaveLength(1);
    expect(learner.state().waiting).toBe(0);
  });

  it('learns again what is run again after its proposal was deleted', async () => {
    putDeployment(cluster);
    await start({ freshMs: 50 });
    const web = container('web-1');
    learner.events([learned(web, '/bin/server')]);
    await until('a proposal', has('/bin/server'));
    cluster.remove(WEB);
    let count = 1n;
    await until('the proposal again', () => {
      learner.counts([fakeSeen(web, `${web.containerId} /bin/server`, ++count, { mode: undefined })]);
      return has('/bin/server')();
    });
  });
});

describe('workloads', () => {
  const pod = (name: string, metadata: object) =>
    cluster.put(`/api/v1/namespaces/shop/pods/${name}`, { metadata: { uid: `uid-${name}`, ...metadata } });
  const owner = (kind: string, name: string, uid: string | undefined, apiVersion = 'apps/v1') => ({
    ownerReferences: [{ apiVersion, kind, name, uid, controller: true }],
  });
  const learnFrom = (name: string): void => learner.events([learned(container(name), '/bin/evil')]);

  it.each([
    ['StatefulSet', 'statefulsets', 'apps/v1', 'sts-db'],
    ['DaemonSet', 'daemonsets', 'apps/v1', 'ds-db'],
    ['ReplicaSet', 'replicasets', 'apps/v1', 'rs-db'],
    ['Job', 'jobs', 'batch/v1', 'job-db'],
  ])('of kind %s are found by owner references', async (kind, plural, apiVersion, name) => {
    const labels = { app: 'db' };
    const { metadata } = cluster.put(`/apis/${apiVersion}/namespaces/shop/${plural}/db`, {
      spec: { selector: { matchLabels: labels } },
    });
    pod('db-0', { labels, ...owner(kind, 'db', metadata.uid, apiVersion) });
    await start();
    learnFrom('db-0');
    await until('a proposal', () => allowed(`${PROPOSALS}/${name}`).length > 0);
    expect(cluster.get(`${PROPOSALS}/${name}`)?.metadata['ownerReferences']).toMatchObject([
      { apiVersion, kind, name: 'db', uid: metadata.uid },
    ]);
  });

  it('of kind CronJob are found by the labels of their template', async () => {
    const labels = { app: 'night' };
    const cronJob = cluster.put('/apis/batch/v1/namespaces/shop/cronjobs/night', {
      spec: { jobTemplate: { spec: { template: { metadata: { labels } } } } },
    });
    const selector = { matchLabels: { 'controller-uid': 'j' } };
    const job = cluster.put('/apis/batch/v1/namespaces/shop/jobs/night-28', {
      metadata: owner('CronJob', 'night', cronJob.metadata.uid, 'batch/v1'),
      spec: { selector },
    });
    const claim = owner('Job', 'night-28', job.metadata.uid, 'batch/v1');
    pod('night-28-x', { labels: { ...labels, ...selector.matchLabels }, ...claim });
    pod('night-28-y', { labels: selector.matchLabels, ...claim });
    await start();
    learnFrom('night-28-x');
    await until('a proposal', () => allowed(`${PROPOSALS}/cronjob-night`).length > 0);
    learnFrom('night-28-y');
    await until('the refusal', () => counter('learned_workloads_refused') === 1);
    expect(proposals()).toHaveLength(1);
  });

  it('are not what names and labels say: such a pod adds nothing, and ends nothing', async () => {
    putDeployment(cluster);
    await start();
    learner.events([learned(container('web-1'), '/bin/server')]);
    await until('a proposal', has('/bin/server'));
    // All that made the reference crash, or believe.
    const liars: [string, Record<string, string>][] = [
      ['a', { 'pod-template-hash': '5d59d67564' }],
      ['abcd', { 'controller-revision-hash': 'x' }],
      ['b', { 'statefulset.kubernetes.io/pod-name': 'nodash' }],
      ['web-5d59d67564-zzzzz', { app: 'web', 'pod-template-hash': '5d59d67564' }],
      ['web-6', { app: 'web', 'job-name': 'web' }],
    ];
    for (const [name, labels] of liars) {
      pod(name, { labels });
      const map = new Map(Object.entries(labels));
      const bound = container(name, { labels: map, workload: workloadFromPod(name, map) });
      learner.events([learned(bound, '/bin/evil')]);
    }
    await until('five refusals', () => counter('learned_workloads_refused') === 5);
    await settled();
    expect(allowed()).toEqual(['/bin/server']);
    expect(proposals()).toHaveLength(1);
  });

  it.each<[string, (real: ReturnType<typeof putDeployment>) => object]>([
    ['a uid that nothing has', () => owner('ReplicaSet', 'web-5d59d67564', 'made-up')],
    [
      'an owner of another namespace',
      () => {
        const other = putDeployment(cluster, { namespace: 'bank', name: 'vault', pods: [] });
        return owner('ReplicaSet', 'vault-5d59d67564', other.replicaSet.metadata.uid);
      },
    ],
    [
      'another namespace’s uid under a name that is here',
      () => {
        const other = putDeployment(cluster, { namespace: 'bank', pods: [] });
        return owner('ReplicaSet', 'web-5d59d67564', other.replicaSet.metadata.uid);
      },
    ],
    [
      'an owner that does not select it',
      ({ replicaSet }) => ({
        labels: { app: 'other' },
        ...owner('ReplicaSet', 'web-5d59d67564', replicaSet.metadata.uid),
      }),
    ],
    [
      'a Deployment without a ReplicaSet',
      ({ deployment }) => owner('Deployment', 'web', deployment.metadata.uid),
    ],
    [
      'a group of its own',
      ({ replicaSet }) => owner('ReplicaSet', 'web-5d59d67564', replicaSet.metadata.uid, 'evil/v1'),
    ],
    ['a name that leads elsewhere', () => owner('ReplicaSet', '..', 'x')],
    ['a list that is none', () => ({ ownerReferences: 'x' })],
    [
      'an owner without control',
      ({ replicaSet: { metadata } }) => ({
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: metadata.name, uid: metadata.uid },
        ],
      }),
    ],
    [
      'a policy',
      ({ replicaSet }) => ({
        labels: { app: 'web', [POLICY_LABEL]: 'x' },
        ...owner('ReplicaSet', 'web-5d59d67564', replicaSet.metadata.uid),
      }),
    ],
  ])('are not believed of a pod that claims %s', async (_what, forged) => {
    const real = putDeployment(cluster);
    const metadata = { labels: { app: 'web' }, ...forged(real) };
    pod('evil', metadata);
    await start();
    learnFrom('evil');
    await until('the refusal', () => counter('learned_workloads_refused') === 1);
    await settled();
    expect(proposals()).toEqual([]);
    expect(learner.state().waiting).toBe(0);
  });

  it('that a forged ReplicaSet claims are not believed either', async () => {
    const { deployment } = putDeployment(cluster);
    const labels = { app: 'mine' };
    const mine = cluster.put('/apis/apps/v1/namespaces/shop/replicasets/mine', {
      metadata: owner('Deployment', 'web', deployment.metadata.uid),
      spec: { selector: { matchLabels: labels } },
    });
    pod('evil', { labels, ...owner('ReplicaSet', 'mine', mine.metadata.uid) });
    await start();
    learnFrom('evil');
    await until('the refusal', () => counter('learned_workloads_refused') === 1);
    expect(proposals()).toEqual([]);
    expect(reporting.lines.find(({ level }) => level === 'warn')?.fields['problem']).toContain(
      'does not select',
    );
  });

  it('of a pod that has the name of another are not learned', async () => {
    putDeployment(cluster);
    await start();
    learner.events([learned(container('web-1', { podUid: 'earlier' }), '/bin/evil')]);
    await until('the refusal', () => counter('learned_workloads_refused') === 1);
    expect(proposals()).toEqual([]);
  });

  it('of other controllers are told once for all', async () => {
    for (let index = 0; index < 5; index++) {
      pod(`canary-${index}`, owner('Rollout', 'canary', 'r', 'argoproj.io/v1alpha1'));
    }
    await start();
    for (let index = 0; index < 5; index++) learnFrom(`canary-${index}`);
    await until('five refusals', () => counter('learned_workloads_refused') === 5);
    const told = reporting.lines.filter(
      ({ fields }) => fields['controller'] === 'argoproj.io/v1alpha1 Rollout',
    );
    expect(told).toHaveLength(1);
  });
});

describe('namespaces', () => {
  it('are learned in as their labels say, at once', async () => {
    cluster.put('/api/v1/namespaces/shop', {});
    putDeployment(cluster);
    await start();
    const web = container('web-1');
    learner.events([learned(web, '/bin/before')]);
    await settled();
    expect(proposals()).toEqual([]);
    const program = { pid: 1, kind: 'file' as const, otherMountNamespace: false };
    programs.set(web.containerId, [{ ...program, path: new TextEncoder().encode('/bin/runs') }]);
    cluster.put('/api/v1/namespaces/shop', SELECTED);
    await until('what runs', has('/bin/runs'));
    learner.counts([fakeSeen(web, `${web.containerId} /bin/before`, 2n, { mode: undefined })]);
    await until('what is run again', has('/bin/before'));
    cluster.put('/api/v1/namespaces/shop', {});
    await settled();
    learner.events([learned(web, '/bin/after')]);
    await settled();
    expect(allowed()).toEqual(['/bin/runs', '/bin/before']);
    expect(learner.state().waiting).toBe(0);
  });

  it('that the API has not told yet are waited for', async () => {
    putDeployment(cluster, { namespace: 'new' });
    await start();
    learner.events([learned(container('web-1', { namespace: 'new' }), '/bin/server')]);
    await settled();
    cluster.put('/api/v1/namespaces/new', SELECTED);
    await until('a proposal', () => proposals().some((line) => line.includes('/namespaces/new/')));
  });
});

describe('promotion', () => {
  const mark = (labels: Record<string, string>): void => {
    const known = object(WEB);
    cluster.put(WEB, { ...known, metadata: { ...known.metadata, labels } });
  };

  it('stops learning by the label and lets it go on without', async () => {
    putDeployment(cluster);
    await start();
    const web = container('web-1');
    learner.events([learned(web, '/bin/server')]);
    await until('a proposal', has('/bin/server'));
    mark({ [PROMOTE_LABEL]: 'monitor' });
    await settled();
    const before = cluster.requests.length;
    learner.events([learned(web, '/bin/more')]);
    await settled();
    expect(cluster.requests.length).toBe(before);
    mark({});
    await settled();
    learner.counts([fakeSeen(web, `${web.containerId} /bin/more`, 2n, { mode: undefined })]);
    await until('what is run again', has('/bin/more'));
    mark({ [PROMOTE_LABEL]: 'nonsense' });
    learner.events([learned(web, '/bin/third')]);
    await until('a label that asks for nothing changes nothing', has('/bin/third'));
  });

  it('is seen where the label is read before it is told', async () => {
    putDeployment(cluster);
    cluster.put(WEB, {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicyProposal',
      metadata: {},
      spec: {},
    });
    await start();
    await settled();
    cluster.fault = (line) => (line.includes('watch=') ? { code: 500 } : undefined);
    mark({ [PROMOTE_LABEL]: 'protect' });
    learner.events([learned(container('web-1'), '/bin/server')]);
    await settled();
    expect(allowed()).toEqual([]);
  });

  it('stops learning by the policy and lets it go on when that is removed', async () => {
    putDeployment(cluster);
    await start();
    const web = container('web-1');
    promoted.add('shop/deploy-web');
    learner.events([learned(web, '/bin/server')]);
    await settled();
    expect(proposals()).toEqual([]);
    promoted.clear();
    learner.counts([fakeSeen(web, `${web.containerId} /bin/server`, 2n, { mode: undefined })]);
    await until('what is run again', has('/bin/server'));
  });

  it('makes no proposal beside a policy that no watch has told yet', async () => {
    putDeployment(cluster);
    cluster.put(POLICY, {});
    await start();
    learner.events([learned(container('web-1'), '/bin/server')]);
    await settled();
    expect(proposals()).toEqual([]);
    expect(learner.state().waiting).toBe(0);
  });
});

describe('the API', () => {
  it('being away loses nothing', async () => {
    putDeployment(cluster);
    cluster.fault = () => ({ code: 500 });
    await start();
    const web = container('web-1');
    learner.events(Array.from({ length: 60 }, (_, index) => learned(web, `/bin/${index}`)));
    await settled();
    learner.counted(new Set());
    cluster.fault = undefined;
    await until('every path', () => allowed().length === 60);
    expect(counter('learned_paths_lost')).toBe(0);
    expect(counter('learning_lookup_failures')).toBeGreaterThan(0);
  });

  it.each([403, 404, 409, 410, 429, 500, 503])(
    'answering %i to writes for a while loses nothing',
    async (code) => {
      putDeployment(cluster);
      let left = 3;
      cluster.fault = (line) =>
        /^(POST|PUT)/.test(line) && left-- > 0 ? { code, reason: 'Conflict' } : undefined;
      await start();
      const web = container('web-1');
      learner.events([learned(web, '/bin/a'), learned(web, '/bin/b')]);
      await until('both paths', () => allowed().length === 2);
      learner.events([learned(web, '/bin/c')]);
      await until('the third', has('/bin/c'));
      expect(counter('learned_paths_lost')).toBe(0);
    },
  );

  it('is left alone for as long as it asks, whatever comes meanwhile', async () => {
    putDeployment(cluster);
    cluster.fault = (line) =>
      /^(POST|PUT)/.test(line) ? { code: 429, headers: { 'retry-after': '1' } } : undefined;
    await start();
    const web = container('web-1');
    learner.events([learned(web, '/bin/a')]);
    await until('the first refusal', () => counter('proposal_failures') === 1);
    cluster.fault = undefined;
    const from = performance.now();
    for (let index = 0; index < 20; index++) {
      learner.events([learned(web, `/bin/${index}`)]);
      await sleep(20);
    }
    await until('every path', () => allowed().length === 21);
    expect(performance.now() - from).toBeGreaterThan(900);
  });

  it('saying that the namespace is gone ends its learning, counted', async () => {
    putDeployment(cluster);
    cluster.fault = (line) => (line.startsWith('POST') ? { code: 404, reason: 'NotFound' } : undefined);
    await start();
    learner.events([learned(container('web-1'), '/bin/a')]);
    await until('what waits to be given up', () => counter('learned_paths_lost') > 0);
  });

  it('saying that the workload is gone ends its learning, counted', async () => {
    putDeployment(cluster);
    cluster.fault = (line) => (line.startsWith('POST') ? { code: 410 } : undefined);
    await start();
    learner.events([learned(container('web-1'), '/bin/a')]);
    await until('what waits to be given up', () => counter('learned_paths_lost') === 1);
  });

  it('is asked for a proposal once in its interval, however many paths come', async () => {
    putDeployment(cluster);
    await start();
    const web = container('web-1');
    for (let index = 0; index < 50; index++) {
      learner.events([learned(web, `/bin/${index}`)]);
      await sleep(5);
    }
    await until('every path', () => allowed().length === 50);
    const writes = cluster.requests.filter((line) => /^(POST|PUT)/.test(line)).length;
    expect(writes).toBeLessThan(20);
  });

  it('gets what waits before the agent ends', async () => {
    putDeployment(cluster);
    await start();
    const web = container('web-1');
    learner.events([learned(web, '/bin/a')]);
    await until('a proposal', has('/bin/a'));
    learner.events([learned(web, '/bin/b')]);
    await learner.stop();
    expect(allowed()).toEqual(['/bin/a', '/bin/b']);
    expect([...observations.values()]).toHaveLength(2);
  });
});

describe('a proposal', () => {
  const put = (given: object): void => {
    cluster.put(WEB, {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicyProposal',
      ...given,
    });
  };

  it.each<[string, object, string]>([
    ['rules that are none', { spec: { rulesByContainer: 'everything' } }, 'rulesByContainer'],
    [
      'a path that is none',
      { spec: { rulesByContainer: { main: { executables: { allowed: ['bin'] } } } } },
      '"bin"',
    ],
    ['no spec', {}, 'spec'],
    [
      'another owner',
      { spec: {}, metadata: { ownerReferences: [{ kind: 'Deployment', name: 'db', uid: 'x' }] } },
      'belongs to Deployment db',
    ],
  ])(
    'with %s is reported, stays as it is, and is learned into once it is right',
    async (_what, given, problem) => {
      putDeployment(cluster);
      put(given);
      const before = cluster.get(WEB);
      await start();
      learner.events([learned(container('web-1'), '/bin/server')]);
      await until('a report', () => reporting.lines.some(({ level }) => level === 'error'));
      await settled();
      expect(cluster.get(WEB)).toEqual(before);
      const told = reporting.lines.filter(({ level }) => level === 'error');
      expect(told).toHaveLength(1);
      expect(String(told[0]?.fields['err'])).toContain(problem);
      put({ spec: {} });
      await until('its path', has('/bin/server'));
    },
  );

  it('keeps what users wrote, gets an owner if it has none, and everything that is not ours', async () => {
    const { deployment } = putDeployment(cluster);
    put({
      metadata: { annotations: { note: 'mine' } },
      spec: {
        rulesByContainer: {
          main: { executables: { allowed: ['/opt/own'], otherMountNamespaces: 'unchecked' } },
        },
      },
      status: { observations: [] },
    });
    await start();
    learner.events([learned(container('web-1'), '/bin/server')]);
    await until('its path', has('/bin/server'));
    expect(cluster.get(WEB)).toMatchObject({
      metadata: { annotations: { note: 'mine' }, ownerReferences: [{ uid: deployment.metadata.uid }] },
      spec: {
        rulesByContainer: {
          main: { executables: { allowed: ['/opt/own', '/bin/server'], otherMountNamespaces: 'unchecked' } },
        },
      },
      status: { observations: [] },
    });
  });

  it('of an earlier workload of the same name is waited out', async () => {
    const { deployment } = putDeployment(cluster);
    put({ spec: {}, metadata: { ownerReferences: [{ kind: 'Deployment', name: 'web', uid: 'earlier' }] } });
    await start();
    learner.events([learned(container('web-1'), '/bin/server')]);
    await settled();
    expect(allowed()).toEqual([]);
    cluster.remove(WEB);
    await until('a new one', has('/bin/server'));
    expect(cluster.get(WEB)?.metadata['ownerReferences']).toMatchObject([{ uid: deployment.metadata.uid }]);
  });
});
