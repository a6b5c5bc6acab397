import { createFakeKernel, fakeReporting, type FakeKernel } from '@runtime-enforcer/agent/node/fake-kernel';
import { createPolicyEffect } from '@runtime-enforcer/agent/node/policy-effect';
import { createPolicyWatch, type PolicyWatch } from '@runtime-enforcer/agent/cluster/policy-watch';
import { collectionPath, objectPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { agentGrants } from '../node/agent-rules.ts';
import { type ControlPlane, type ServiceAccountClient, startControlPlane } from './control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from './custom-resources.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

const NAMESPACE = 'shop';
const BUDGET = { timeout: 20_000 };
const TIMINGS = { backOff: { baseMs: 50, maxMs: 500, jitter: 0.5 } };

let plane: ControlPlane;
let proxy: FaultProxy;
let account: ServiceAccountClient;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  proxy = await startFaultProxy(plane);
  account = await plane.serviceAccount(NAMESPACE, 'agent', {
    server: proxy.url,
    ...(await agentGrants()),
  });
});
afterAll(async () => {
  await proxy.stop();
  await plane.stop();
});

let kernel: FakeKernel;
let failures: string[];
let watch: PolicyWatch;
beforeEach(() => {
  kernel = createFakeKernel();
  failures = [];
  const { log, counters } = fakeReporting();
  const { table, binder } = kernel;
  watch = createPolicyWatch({
    ...{ client: account.client, table, log, timings: TIMINGS },
    effect: createPolicyEffect({ table, binder, log, counters, onBoundLate: () => undefined }),
    failures: (place) => failures.push(place),
  });
});
afterEach(async () => {
  proxy.setFault(undefined);
  await watch.stop();
  await plane.admin.client.request({
    method: 'DELETE',
    path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
  });
});

const collection = collectionPath(WORKLOAD_POLICIES, NAMESPACE);
const pathOf = (name: string): string =>
  objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name });
const specOf = (...allowed: readonly string[]) => ({
  mode: 'protect',
  rulesByContainer: { main: { executables: { allowed } } },
});

async function create(name: string, spec: object): Promise<void> {
  const { group, version } = WORKLOAD_POLICIES;
  const body = { apiVersion: `${group}/${version}`, kind: 'WorkloadPolicy', metadata: { name }, spec };
  await plane.admin.client.request({ method: 'POST', path: collection, body });
}
async function patch(name: string, body: object, suffix = ''): Promise<void> {
  const patchType = 'application/merge-patch+json';
  await plane.admin.client.request({ method: 'PATCH', path: pathOf(name) + suffix, patchType, body });
}
async function remove(name: string): Promise<void> {
  await plane.admin.client.request({ method: 'DELETE', path: pathOf(name) });
}
const stateOf = (name: string) => kernel.table.state(`${NAMESPACE}/${name}`);
const appliedNames = (): string[] => kernel.applied.map(({ metadata }) => metadata.name);

it('brings every policy into the kernel, and every change of what matters once', async () => {
  await create('web', specOf('/bin/a'));
  watch.start();
  await watch.loaded;
  await create('db', specOf('/bin/b'));
  await expect.poll(() => stateOf('db')?.state, BUDGET).toBe('ready');
  await patch('web', { status: { phase: 'Ready', totalNodes: 3 } }, '/status');
  await patch('web', { metadata: { annotations: { note: 'x' } } });
  await patch('web', { spec: { mode: 'monitor' } });
  await expect.poll(() => stateOf('web')?.mode, BUDGET).toBe('monitor');
  expect(appliedNames()).toEqual(['web', 'db', 'web']);
  expect(watch.policy(`${NAMESPACE}/web`)?.metadata.generation).toBe(2);
  await remove('db');
  await expect.poll(() => stateOf('db'), BUDGET).toBeUndefined();
});

it('starts while the API server is away, and has everything once it is there', async () => {
  await create('web', specOf('/bin/a'));
  proxy.setFault(() => 'cut');
  proxy.cutAll();
  watch.start();
  await watch.troubled;
  expect(kernel.applied).toEqual([]);
  expect(watch.waitingFor()).toBeDefined();
  proxy.setFault(undefined);
  await watch.loaded;
  expect(stateOf('web')?.state).toBe('ready');
});

it('knows what was added and removed while the API server was restarted and had forgotten the past', async () => {
  for (const name of ['stays', 'goes']) await create(name, specOf('/bin/a'));
  watch.start();
  await watch.loaded;
  proxy.setFault(() => 'cut');
  proxy.cutAll();
  await remove('goes');
  await create('comes', specOf('/bin/a'));
  await plane.compact();
  await plane.restartApiServer();
  proxy.setFault(undefined);
  await expect
    .poll(() => [...kernel.table.states().keys()].toSorted(), BUDGET)
    .toEqual([`${NAMESPACE}/comes`, `${NAMESPACE}/stays`]);
  expect(appliedNames().filter((name) => name === 'stays')).toHaveLength(1);
}, 90_000);
