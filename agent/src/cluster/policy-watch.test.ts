import { POLICY_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import { startFakeApiServer, type FakeApiServer } from '@runtime-enforcer/kube/fake-api-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import { createFakeKernel, fakeReporting, type FakeKernel } from '../node/fake-kernel.ts';
import type { NriContainer } from '../nri/messages.ts';
import { createPolicyEffect } from '../node/policy-effect.ts';
import { createFakePolicyApi, policySpec, type FakePolicyApi } from './fake-policy-api.ts';
import { createPolicyWatch, type PolicyWatch } from './policy-watch.ts';

const BACK_OFF = { baseMs: 10, maxMs: 50, jitter: 0 };

let api: FakePolicyApi;
let server: FakeApiServer;
let kernel: FakeKernel;
let reporting: ReturnType<typeof fakeReporting>;
let boundLate: BoundContainer[];
let failures: string[];
let watch: PolicyWatch;
beforeEach(async () => {
  api = createFakePolicyApi();
  server = await startFakeApiServer((request) => void api.answer(request));
  kernel = createFakeKernel();
  reporting = fakeReporting();
  boundLate = [];
  failures = [];
  watch = makeWatch();
});
afterEach(async () => {
  await watch.stop();
  await server.stop();
});

function makeWatch(): PolicyWatch {
  const { table, binder } = kernel;
  return createPolicyWatch({
    ...{ client: server.client, table, log: reporting.log },
    effect: createPolicyEffect({
      ...{ table, binder, log: reporting.log, counters: reporting.counters },
      onBoundLate: (container) => boundLate.push(container),
    }),
    failures: (place) => failures.push(place),
    timings: { backOff: BACK_OFF },
  });
}
const appliedNames = (): string[] => kernel.applied.map(({ metadata }) => metadata.name);
const stateOf = (name: string) => kernel.table.state(`shop/${name}`);

it('loads what there is, what comes, what changes, and removes what goes', async () => {
  api.put('web', policySpec('/bin/a'));
  api.put('db', policySpec('/bin/b'));
  expect(watch.waitingFor()).toContain('has not told');
  watch.start();
  await watch.loaded;
  expect(appliedNames()).toEqual(['web', 'db']);
  expect(kernel.completed).toBe(true);
  expect(watch.waitingFor()).toBeUndefined();
  expect(watch.policy('shop/web')?.spec.mode).toBe('protect');
  expect(watch.policy('shop/web')?.metadata.generation).toBe(1);
  api.put('late', policySpec('/bin/c'));
  api.put('web', policySpec('/bin/a', '/bin/d'));
  await expect.poll(appliedNames).toEqual(['web', 'db', 'late', 'web']);
  api.remove('db');
  await expect.poll(() => stateOf('db')).toBeUndefined();
  expect(watch.policy('shop/db')).toBeUndefined();
});

it('does nothing for a status, for labels, or for a list that says the same', async () => {
  api.put('web', policySpec('/bin/a'));
  watch.start();
  await watch.loaded;
  api.touch('web');
  api.touch('web');
  api.broken = 410;
  server.cut();
  await expect.poll(() => failures.length).toBeGreaterThan(0);
  api.broken = undefined;
  await expect.poll(() => watch.counters().lists).toBe(2);
  api.put('end', policySpec('/bin/b'));
  await expect.poll(appliedNames).toEqual(['web', 'end']);
});

it('says at the policy which field is wrong, keeps what was loaded, and takes the next good version', async () => {
  api.put('web', policySpec('/bin/a'));
  watch.start();
  await watch.loaded;
  api.put('web', { mode: 'blok', rulesByContainer: {} });
  await expect.poll(() => stateOf('web')?.state).toBe('failed');
  expect(stateOf('web')?.message).toContain(
    'spec.mode: "blok" is not known; expected one of monitor, protect',
  );
  expect(watch.policy('shop/web')?.metadata.generation).toBe(1);
  api.put('new', null);
  await expect.poll(() => stateOf('new')?.message).toContain('spec');
  expect(watch.waitingFor()).toBeUndefined();
  api.put('web', policySpec('/bin/b'));
  await expect.poll(() => stateOf('web')?.state).toBe('ready');
});

it('loads what was added and forgets what was removed while the API server was away', async () => {
  api.put('stays', policySpec('/bin/a'));
  api.put('goes', policySpec('/bin/a'));
  watch.start();
  await watch.loaded;
  api.broken = 410;
  server.cut();
  await expect.poll(() => failures.length).toBeGreaterThan(0);
  api.remove('goes');
  api.put('comes', policySpec('/bin/a'));
  api.broken = undefined;
  await expect.poll(() => [...kernel.table.states().keys()]).toEqual(['shop/stays', 'shop/comes']);
});

it('binds waiting containers when their policy appears', async () => {
  const pod = {
    ...{ id: 'p1', name: 'web-1', uid: 'u1', namespace: 'shop', annotations: new Map(), cgroupParent: '' },
    ...{ labels: new Map([[POLICY_LABEL, 'web']]), runtimeHandler: '', pid: 1 },
  };
  const container: NriContainer = {
    ...{ id: 'c1', podSandboxId: 'p1', name: 'main', labels: new Map(), annotations: new Map() },
    ...{ state: 'running', args: [], cgroupsPath: '/c1', pid: 2, image: '' },
  };
  const { waiting } = await kernel.binder.reconcile([pod], [container]);
  expect(waiting).toHaveLength(1);
  watch.start();
  await watch.loaded;
  api.put('web', policySpec('/bin/a'));
  await expect.poll(() => boundLate.map(({ containerId }) => containerId)).toEqual(['c1']);
});

it('lets no slow policy keep the others waiting, and tells which is overdue', async () => {
  const stuck = Promise.withResolvers<undefined>();
  const { apply } = kernel.table;
  Object.assign(kernel.table, {
    apply: async (policy: Parameters<typeof apply>[0]) => {
      if (policy.metadata.name === 'slow') await stuck.promise;
      return await apply(policy);
    },
  });
  for (const name of ['slow', 'one', 'two']) api.put(name, policySpec('/bin/a'));
  watch.start();
  await expect.poll(appliedNames).toEqual(['one', 'two']);
  api.put('one', policySpec('/bin/b'));
  await expect.poll(appliedNames).toEqual(['one', 'two', 'one']);
  await expect.poll(() => watch.waitingFor(), { timeout: 8_000 }).toBe('1 policies are not loaded yet');
  const upToDate = watch.bringUpToDate('shop/slow');
  stuck.resolve(undefined);
  await upToDate;
  expect(stateOf('slow')?.state).toBe('ready');
  await watch.loaded;
}, 10_000);

it('starts without an API server and keeps trying', async () => {
  api.broken = 503;
  await kernel.table.refuse('shop/inherited', 'stands for what an agent before had loaded');
  watch.start();
  await watch.troubled;
  expect(kernel.completed).toBe(false);
  expect(watch.compare()).toBe(0);
  expect(kernel.removed).toEqual([]);
  api.put('web', policySpec('/bin/a'));
  api.broken = undefined;
  await watch.loaded;
  expect(appliedNames()).toEqual(['web']);
  expect(kernel.removed).toEqual(['shop/inherited']);
  const told = reporting.lines.filter(({ level }) => level === 'warn');
  expect(told).toHaveLength(1);
  expect(told[0]?.message).toContain('stay in force');
});

it('repairs what the table holds otherwise', async () => {
  api.put('web', policySpec('/bin/a'));
  watch.start();
  await watch.loaded;
  expect(watch.compare()).toBe(0);
  await kernel.table.remove('shop/web');
  await kernel.table.refuse('shop/stray', 'nobody knows why');
  expect(watch.compare()).toBe(2);
  await expect.poll(() => stateOf('web')?.state).toBe('ready');
  await expect.poll(() => stateOf('stray')).toBeUndefined();
});

it('knows which proposals have become policies', async () => {
  api.put('renamed', policySpec('/bin/a'), { labels: { [PROMOTED_FROM_LABEL]: 'deploy-web', other: 'x' } });
  watch.start();
  await watch.loaded;
  expect(watch.isPromoted('shop', 'deploy-web')).toBe(true);
  expect(watch.isPromoted('shop', 'renamed')).toBe(true);
  expect(watch.isPromoted('shop', 'deploy-db')).toBe(false);
  expect(watch.isPromoted('other', 'deploy-web')).toBe(false);
});
