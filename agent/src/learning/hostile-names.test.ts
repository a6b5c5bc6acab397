import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ExecEvent } from '../kernel/enforcer.ts';
import { fakeContainer, fakeEvent, fakeKey, fakeReporting } from '../node/fake-kernel.ts';
import { createCumulativeLog, type KeptLog } from '../violations/cumulative-log.ts';
import { type ClusterLearner, createClusterLearner } from './cluster-learner.ts';
import { type FakeCluster, putDeployment, startFakeCluster } from './fake-cluster.ts';
import { parseLearningSelector } from './learning-selector.ts';

const PROPOSALS = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop/workloadpolicyproposals';
const ODD_NAMES = [
  ...['', '.', '..', '../../../secrets/admin', 'web-1/log', 'web-1?x=y', 'web-1#', '%2e%2e', '\0', '\n', '*'],
  ...['__proto__', 'constructor', '\u202e', '\ud800', 'WEB-1', 'web-1 ', 'x'.repeat(5_000)],
];
/** Paths of whole lists, and of single pods and owners of the one namespace that is learned. */
const KNOWN_REQUEST =
  /^GET \/api\/v1\/namespaces(\?|\/shop\/pods\/[^/?#]+$)|^GET \/apis\/(apps|batch)\/v1\/namespaces\/shop\/[a-z]+\/[^/?#]+$|^(GET|POST|PUT) \/apis\/runtimeenforcer\.kubewarden\.io\/v1alpha1\/(namespaces\/shop\/)?(workloadpolicyproposals|workloadpolicies)(\/[a-z0-9.-]+)?(\?|$)/;

let cluster: FakeCluster;
let reporting: ReturnType<typeof fakeReporting>;
let observations: KeptLog<NodeObservation>;
let learner: ClusterLearner;
beforeEach(async () => {
  cluster = await startFakeCluster();
  cluster.put('/api/v1/namespaces/shop', { metadata: { labels: { learn: 'yes' } } });
  reporting = fakeReporting();
  observations = createCumulativeLog<NodeObservation>({ incarnation: 'i' });
  learner = createClusterLearner({
    ...{ client: cluster.client, nodeName: 'node-1', observations },
    ...{ log: reporting.log, counters: reporting.counters },
    selector: parseLearningSelector('{"matchLabels":{"learn":"yes"}}') ?? [],
    isPromoted: () => false,
    containers: () => [],
    readRunning: () => Promise.resolve([]),
    timings: {
      writer: {
        ...{ gatherMs: 10, intervalMs: 30, writesPerSecond: 200, burst: 50, flushMs: 500 },
        backOff: { baseMs: 10, maxMs: 50, jitter: 0 },
      },
    },
  });
  await learner.start();
});
afterEach(async () => {
  await learner.stop();
  await cluster.stop();
});

let made = 0;
function learned(more: Partial<BoundContainer>, path: Uint8Array | string): ExecEvent {
  const containerId = `c${++made}`;
  const from = fakeContainer({ containerId, state: 'learning', ...more });
  return fakeEvent(from, {
    ...{ kind: 'learned', key: fakeKey(containerId), mode: undefined, reason: undefined },
    ...{ path: typeof path === 'string' ? new TextEncoder().encode(path) : path, origin: 'entrypoint' },
  });
}
async function webIsLearned(path: string): Promise<void> {
  learner.events([learned({ podName: 'web-1', podUid: 'uid-web-1' }, path)]);
  await expect
    .poll(() => JSON.stringify(cluster.get(`${PROPOSALS}/deploy-web`) ?? {}), { timeout: 8_000 })
    .toContain(JSON.stringify(path));
}

it('names of pods, namespaces and containers that cannot be add nothing, lead nowhere, and keep nobody from being learned', async () => {
  putDeployment(cluster);
  for (const name of ODD_NAMES) {
    learner.events([
      learned({ podName: name, podUid: name }, '/bin/evil'),
      learned({ podName: 'web-1', podUid: 'uid-web-1', namespace: name }, '/bin/evil'),
      learned({ podName: 'web-1', podUid: 'uid-web-1', containerName: `${name}!` }, '/bin/evil'),
      learned({ podName: 'web-1', podUid: name }, '/bin/evil'),
    ]);
  }
  await webIsLearned('/bin/server');
  await sleep(300);
  expect(cluster.requests.filter((line) => !KNOWN_REQUEST.test(line))).toEqual([]);
  expect(JSON.stringify(cluster.get(`${PROPOSALS}/deploy-web`))).not.toContain('/bin/evil');
  expect(cluster.requests.filter((line) => line.startsWith('POST'))).toHaveLength(1);
  expect(Array.from(observations.values(), ([, { executablePath }]) => executablePath)).toEqual([
    '/bin/server',
  ]);
});

it('objects of the API of any shape end no learning, and forge no owner', async () => {
  putDeployment(cluster);
  const shapes = fc.sample(
    fc.record(
      {
        ownerReferences: fc.oneof(
          fc.jsonValue(),
          fc.array(
            fc.record({
              apiVersion: fc.constantFrom('apps/v1', '', 'batch/v1', 7),
              kind: fc.constantFrom('ReplicaSet', 'StatefulSet', '__proto__', null),
              name: fc.constantFrom('web-5d59d67564', '..', '', 'a/b', 3),
              uid: fc.constantFrom('x', '', null),
              controller: fc.constantFrom(true, 'true', 1),
            }),
          ),
        ),
        labels: fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue())),
      },
      { requiredKeys: [] },
    ),
    { numRuns: 60, seed: 9 },
  );
  for (const [i, metadata] of shapes.entries()) {
    cluster.put(`/api/v1/namespaces/shop/pods/odd-${i}`, {
      metadata: { ...metadata, uid: `uid-odd-${i}` },
      spec: i % 2 === 0 ? { containers: metadata.labels } : metadata.labels,
    });
    learner.events([learned({ podName: `odd-${i}`, podUid: `uid-odd-${i}` }, '/bin/evil')]);
  }
  await webIsLearned('/bin/server');
  await expect.poll(() => learner.state().waiting, { timeout: 8_000 }).toBe(0);
  expect(reporting.counters.value('learned_workloads_refused')).toBe(shapes.length);
  expect(cluster.requests.filter((line) => !KNOWN_REQUEST.test(line))).toEqual([]);
  expect(JSON.stringify(cluster.get(`${PROPOSALS}/deploy-web`))).not.toContain('/bin/evil');
  expect(cluster.requests.filter((line) => line.startsWith('POST'))).toHaveLength(1);
}, 20_000);
