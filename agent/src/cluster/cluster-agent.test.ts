import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { fakeStatus, startFakeApiServer, type FakeApiServer } from '@runtime-enforcer/kube/fake-api-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readRunOptions } from '../commands/run-options.ts';
import { startMetrics, type AgentMetrics } from '../metrics.ts';
import { createFakeKernel, fakeEvent, fakeReporting, type FakeKernel } from '../node/fake-kernel.ts';
import { startFakeRuntime, type FakeRuntime } from '../nri/fake-runtime.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import { reportedPolicy } from '../server/policy-report.ts';
import { createCumulativeLog, type KeptLog } from '../violations/cumulative-log.ts';
import type { NodeViolation } from '../violations/node-violation.ts';
import { createClusterAgent, type ClusterAgent } from './cluster-agent.ts';
import { createFakePolicyApi, policySpec, type FakePolicyApi } from './fake-policy-api.ts';
import { createNodeHealth } from './node-health.ts';

const UID = '0c7f4e3e-7c0f-4d38-9a52-5b4a5a1d2c3b';
/** For a machine that does other things as well. */
const POLL = { timeout: 10_000 };
const BACK_OFF = { baseMs: 10, maxMs: 50, jitter: 0 };

let directory: string;
let api: FakePolicyApi;
let server: FakeApiServer;
let events: { readonly reason: string; readonly message: string }[];
let runtime: FakeRuntime;
let kernel: FakeKernel;
let metrics: AgentMetrics;
let violations: KeptLog<NodeViolation>;
let exported: [path: string, occurrences: number][];
let health: ReturnType<typeof createNodeHealth>;
let agent: ClusterAgent;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cluster-agent-'));
  api = createFakePolicyApi();
  [events, exported] = [[], []];
  server = await startFakeApiServer((request) => {
    if (api.answer(request)) return;
    if (request.method === 'POST' && request.url.pathname.endsWith('/events')) {
      events.push(JSON.parse(request.body) as (typeof events)[number]);
      request.reply(201, {});
    } else {
      request.reply(404, fakeStatus(404, 'NotFound'));
    }
  });
  runtime = await startFakeRuntime({ socketPath: join(directory, 'nri.sock') });
  kernel = createFakeKernel();
  metrics = startMetrics();
  violations = createCumulativeLog<NodeViolation>({ incarnation: 'i1' });
  health = createNodeHealth();
  const args = ['--kubeconfig', 'none', '--grpc-mtls-enabled=false', '--nri-socket-path'];
  const options = readRunOptions([...args, join(directory, 'nri.sock')], { NODE_NAME: 'node-1' });
  if (options.cluster === undefined) throw new Error('expected options of a cluster');
  agent = createClusterAgent({
    ...{ options, cluster: options.cluster, client: server.client, kernel, violations, metrics },
    ...{ health: health.subjects, log: fakeReporting().log, timings: { backOff: BACK_OFF } },
    onViolation: ({ executablePath }, occurrences) => exported.push([executablePath, occurrences]),
  });
});
afterEach(async () => {
  await agent.stop();
  await runtime.close();
  await server.stop();
  metrics.stop();
  await rm(directory, { recursive: true });
});

function pod(policy: string): NriPodSandbox {
  return {
    ...{
      id: 'p1',
      name: 'web-1',
      uid: UID,
      namespace: 'shop',
      annotations: new Map(),
      cgroupParent: '/kubepods',
    },
    ...{ labels: new Map([[POLICY_LABEL, policy]]), runtimeHandler: '', pid: 1 },
  };
}
function container(id: string): NriContainer {
  return {
    ...{ id, podSandboxId: 'p1', name: 'main', state: 'created', labels: new Map(), annotations: new Map() },
    ...{ args: [], cgroupsPath: `/${id}`, pid: 2, image: 'shop/web:1' },
  };
}

it('loads the policies of the API server, then answers the runtime, and is ready then', async () => {
  api.put('web', policySpec('/bin/server'));
  expect(health.ready()).toHaveLength(2);
  const starting = agent.start();
  const plugin = await runtime.accept();
  expect(kernel.applied).toHaveLength(1);
  await plugin.configure();
  expect(health.ready()).toEqual(['waiting for NRI synchronization to complete']);
  await plugin.synchronize([], []);
  await starting;
  expect(health.ready()).toEqual([]);
  await plugin.startContainer(pod('web'), container('c1'));
  expect(kernel.binder.container('c1')?.state).toBe('enforced');
  expect(agent.sources.node()).toMatchObject({
    runtimeConnected: true,
    policiesLoaded: true,
    attached: true,
  });
  expect(agent.sources.policies().get('shop/web')?.state).toBe('ready');
  expect((await agent.status()).policies).toHaveLength(1);
});

it('answers the runtime without the API server, refuses what it does not know, and binds it later', async () => {
  api.broken = 503;
  const [plugin] = await Promise.all([runtime.serve([pod('web')], [container('old')]), agent.start()]);
  expect(health.ready()).toEqual([
    'waiting for WorkloadPolicy synchronization to complete: the API server has not told its policies',
  ]);
  expect(health.live()).toEqual([]);
  await expect(plugin.startContainer(pod('web'), container('new'))).rejects.toThrow(
    'the policy does not exist',
  );
  expect(kernel.binder.container('old')?.state).toBe('waiting');
  api.put('web', policySpec('/bin/server'));
  api.broken = undefined;
  await expect.poll(() => kernel.binder.container('old')?.state, POLL).toBe('enforced');
  await expect.poll(() => health.ready(), POLL).toEqual([]);
  await plugin.startContainer(pod('web'), container('new'));
  expect(kernel.binder.container('new')?.state).toBe('enforced');
  await expect
    .poll(() => events.map(({ reason }) => reason).toSorted(), POLL)
    .toEqual(['ContainerBoundLate', 'ContainerRefused', 'ContainerUnchecked']);
});

it('lets new maps that replace others take no effect before the policies are known', async () => {
  Object.assign(kernel.enforcer, { pending: true });
  api.put('web', policySpec('/bin/server'));
  api.broken = 503;
  await Promise.all([runtime.serve([pod('web')], [container('old')]), agent.start()]);
  expect(kernel.commits.count).toBe(0);
  api.broken = undefined;
  await expect.poll(() => kernel.commits.count, POLL).toBe(1);
  expect(kernel.binder.container('old')?.state).toBe('enforced');
});

it('tells readers of a policy that it does not understand, and enforces the others', async () => {
  api.put('web', policySpec('/bin/server'));
  api.put('broken', { mode: 'sometimes', rulesByContainer: {} });
  await Promise.all([runtime.serve(), agent.start()]);
  await expect.poll(() => agent.sources.policies().size, POLL).toBe(2);
  const told = [...agent.sources.policies()].map(([name, state]) => [name, reportedPolicy(state)]);
  expect(told).toContainEqual(['shop/web', expect.objectContaining({ state: 'ready', message: '' })]);
  expect(told).toContainEqual([
    'shop/broken',
    expect.objectContaining({ state: 'error', message: expect.stringContaining('spec.mode') as string }),
  ]);
});

it('keeps each violation for its readers, exports it, and tells the first of a kind on the pod', async () => {
  api.put('web', policySpec('/bin/server'));
  const [plugin] = await Promise.all([runtime.serve(), agent.start()]);
  await plugin.startContainer(pod('web'), container('c1'));
  const bound = kernel.binder.container('c1');
  kernel.deliver([fakeEvent(bound)]);
  const { entries } = agent.sources.violations.changedSince(0, 10);
  expect(entries.map(({ value }) => value)).toMatchObject([
    { namespace: 'shop', policyName: 'web', podName: 'web-1', executablePath: '/usr/bin/id', occurrences: 1 },
  ]);
  expect(exported).toEqual([['/usr/bin/id', 1]]);
  await expect.poll(() => events.map(({ reason }) => reason), POLL).toEqual(['ExecutableDenied']);
});

it('is neither alive nor ready once the program was taken off the node', async () => {
  await Promise.all([runtime.serve(), agent.start()]);
  kernel.attached = false;
  await expect.poll(() => health.live(), POLL).toHaveLength(1);
  expect(health.ready()).toEqual(health.live());
  expect(agent.sources.node()).toMatchObject({ attached: false, attachment: '' });
});

it('stops within its time while the API server does not answer', async () => {
  api.broken = 503;
  await Promise.all([runtime.serve(), agent.start()]);
  const startedAt = performance.now();
  await agent.stop();
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});
