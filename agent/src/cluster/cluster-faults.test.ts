import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import {
  fakeStatus,
  startFakeApiServer,
  type FakeApiServer,
  type FakeRequest,
} from '@runtime-enforcer/kube/fake-api-server';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readRunOptions } from '../commands/run-options.ts';
import { startMetrics, type AgentMetrics } from '../metrics.ts';
import { createFakeKernel, fakeReporting, type FakeKernel } from '../node/fake-kernel.ts';
import { startFakeRuntime, type FakeRuntime } from '../nri/fake-runtime.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import { createCumulativeLog } from '../violations/cumulative-log.ts';
import type { NodeViolation } from '../violations/node-violation.ts';
import { createClusterAgent, type ClusterAgent } from './cluster-agent.ts';
import { createFakePolicyApi, policySpec, type FakePolicyApi } from './fake-policy-api.ts';
import { createNodeHealth } from './node-health.ts';

const UID = '0c7f4e3e-7c0f-4d38-9a52-5b4a5a1d2c3b';
const BACK_OFF = { baseMs: 10, maxMs: 50, jitter: 0 };
/** Nothing that acts on a terminal, ends a line, or changes the direction of writing. */
const ONE_PRINTABLE_LINE = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u;
const WITHIN = { timeout: 8_000 };
/** What an agent may ask an API server about policies and Events. */
const KNOWN_REQUEST =
  /^(GET \/apis\/runtimeenforcer\.kubewarden\.io\/v1alpha1\/workloadpolicies\?|(POST|PATCH) \/api\/v1\/namespaces\/[a-z0-9-]{1,63}\/events(\/[a-z0-9.-]+)?$)/;

let directory: string;
let api: FakePolicyApi;
let server: FakeApiServer;
/** Answers a request in place of the API server; false leaves it to that. */
let fault: (request: FakeRequest) => boolean;
let events: { readonly reason: string; readonly message: string }[];
let runtime: FakeRuntime;
let kernel: FakeKernel;
let metrics: AgentMetrics;
let health: ReturnType<typeof createNodeHealth>;
let agent: ClusterAgent;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cluster-faults-'));
  api = createFakePolicyApi();
  [events, fault] = [[], () => false];
  server = await startFakeApiServer((request) => {
    if (fault(request) || api.answer(request)) return;
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
  health = createNodeHealth();
  const args = ['--kubeconfig', 'none', '--grpc-mtls-enabled=false', '--nri-socket-path'];
  const options = readRunOptions([...args, join(directory, 'nri.sock')], { NODE_NAME: 'node-1' });
  if (options.cluster === undefined) throw new Error('expected options of a cluster');
  agent = createClusterAgent({
    ...{ options, cluster: options.cluster, client: server.client, kernel, metrics },
    violations: createCumulativeLog<NodeViolation>({ incarnation: 'i1' }),
    ...{ health: health.subjects, log: fakeReporting().log, timings: { backOff: BACK_OFF } },
    onViolation: () => undefined,
  });
});
afterEach(async () => {
  await agent.stop();
  await runtime.close();
  await server.stop();
  metrics.stop();
  await rm(directory, { recursive: true });
});

function pod(more: Partial<NriPodSandbox> = {}): NriPodSandbox {
  return {
    ...{ id: 'p1', name: 'web-1', uid: UID, namespace: 'shop', annotations: new Map() },
    ...{ labels: new Map([[POLICY_LABEL, 'web']]), cgroupParent: '/kubepods', runtimeHandler: '', pid: 1 },
    ...more,
  };
}
function container(id: string, more: Partial<NriContainer> = {}): NriContainer {
  return {
    ...{ id, podSandboxId: 'p1', name: 'main', state: 'created', labels: new Map(), annotations: new Map() },
    ...{ args: [], cgroupsPath: `/${id}`, pid: 2, image: 'shop/web:1' },
    ...more,
  };
}
const stateOf = (name: string) => kernel.table.state(`shop/${name}`);
const boundState = (id: string) => kernel.binder.container(id)?.state;

describe('an API server', () => {
  it('that takes requests and never answers keeps the runtime waiting for a few seconds, and no container after that', async () => {
    const held: FakeRequest[] = [];
    fault = (request) => held.push(request) > 0;
    api.put('web', policySpec('/bin/server'));
    const starting = agent.start();
    const plugin = await runtime.accept(WITHIN.timeout);
    await plugin.configure();
    await plugin.synchronize([pod()], [container('old')]);
    await starting;
    expect(held.length).toBeGreaterThan(0);
    await expect(plugin.startContainer(pod(), container('new'))).rejects.toThrow('the policy does not exist');
    await plugin.startContainer(pod({ labels: new Map() }), container('free'));
    expect(health.live()).toEqual([]);
    expect(health.ready().join()).toContain('the API server has not told its policies');
    fault = () => false;
    for (const { response } of held) response.destroy();
    await expect.poll(() => boundState('old'), WITHIN).toBe('enforced');
    await expect.poll(() => health.ready(), WITHIN).toEqual([]);
  }, 30_000);

  it('that is slow is waited for, and every change arrives', async () => {
    const slow = new WeakSet<FakeRequest>();
    fault = (request) => {
      if (slow.has(request)) return false;
      slow.add(request);
      setTimeout(() => fault(request) || api.answer(request), 700);
      return true;
    };
    api.put('web', policySpec('/bin/server'));
    const [plugin] = await Promise.all([runtime.serve(), agent.start()]);
    expect(health.ready()).toEqual([]);
    await plugin.startContainer(pod(), container('c1'));
    expect(boundState('c1')).toBe('enforced');
    server.cut();
    api.put('late', policySpec('/bin/late'));
    await expect.poll(() => stateOf('late')?.state, WITHIN).toBe('ready');
  });

  it.each<[string, (request: FakeRequest, turn: number) => boolean]>([
    [
      'that fails every other time and ends each watch',
      (request, turn) => {
        if (turn % 2 === 0) {
          if (turn % 4 === 0) request.response.destroy();
          else request.reply(503, fakeStatus(503, 'ServiceUnavailable'));
          return true;
        }
        setTimeout(() => request.response.destroy(), 80);
        return false;
      },
    ],
    [
      'that has forgotten every version for ever',
      (request) => {
        const isWatch = request.url.searchParams.has('watch');
        if (isWatch && !request.url.searchParams.has('sendInitialEvents'))
          request.reply(410, fakeStatus(410, 'Expired'));
        return request.response.writableEnded;
      },
    ],
  ])('%s costs time, and nothing that was asked for', async (_, befalls) => {
    let turns = 0;
    fault = (request) => request.method === 'GET' && befalls(request, ++turns);
    api.put('web', policySpec('/bin/server'));
    api.put('goes', policySpec('/bin/x'));
    const [plugin] = await Promise.all([runtime.serve(), agent.start()]);
    await expect.poll(() => health.ready(), WITHIN).toEqual([]);
    await plugin.startContainer(pod(), container('c1'));
    for (let i = 0; i < 20; i++) {
      api.put('web', policySpec('/bin/server', `/bin/v${i}`));
      api.put(`p${i}`, policySpec('/bin/a'));
      await plugin.startContainer(pod(), container(`c1-${i}`));
      expect([boundState(`c1-${i}`), boundState('c1'), health.live()]).toEqual(['enforced', 'enforced', []]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    api.remove('goes');
    await expect.poll(() => stateOf('p19')?.state, WITHIN).toBe('ready');
    await expect.poll(() => stateOf('goes'), WITHIN).toBeUndefined();
    const paths = () =>
      kernel.applied
        .filter(({ metadata }) => metadata.name === 'web')
        .at(-1)
        ?.spec.rulesByContainer.get('main');
    await expect.poll(() => paths()?.executables.allowed.at(-1), WITHIN).toBe('/bin/v19');
    // Policies that stay the same are not loaded again, however often they are told.
    expect(kernel.applied.filter(({ metadata }) => metadata.name === 'p3')).toHaveLength(1);
    expect(kernel.table.states().size).toBe(21);
    const requests = turns;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    // Waits of 50 ms at least between tries: a list and a watch each.
    expect(turns - requests).toBeLessThan(60);
  });

  it('with objects of any shape gets each bad one a state that says why, and the good ones work', async () => {
    const [plugin] = await Promise.all([runtime.serve(), agent.start()]);
    const odd = ['__proto__', 'constructor', '..', 'x'.repeat(300), 'ä\u202e\u001b[2J', ' '];
    const shapes = fc.sample(
      fc.oneof(
        fc.jsonValue({ maxDepth: 4 }),
        fc.record({ mode: fc.jsonValue(), rulesByContainer: fc.jsonValue({ maxDepth: 5 }) }),
        fc.dictionary(fc.constantFrom(...odd), fc.jsonValue()).map((rulesByContainer) => ({
          ...{ mode: 'protect', rulesByContainer },
        })),
      ),
      { numRuns: 150, seed: 4 },
    );
    for (const [i, spec] of shapes.entries()) {
      api.put(odd[i] ?? `odd-${i}`, spec, {
        ...(i % 3 === 0 && { labels: { [`${POLICY_LABEL}-x`]: 7 }, generation: null }),
        ...(i % 7 === 0 && { ownerReferences: 'mine', annotations: [1] }),
      });
    }
    api.put('web', policySpec('/bin/server'));
    await expect.poll(() => stateOf('web')?.state, WITHIN).toBe('ready');
    await expect.poll(() => health.ready(), WITHIN).toEqual([]);
    let failed = 0;
    for (const { state, message } of kernel.table.states().values()) {
      if (state === 'ready') continue;
      failed++;
      expect(message?.length).toBeGreaterThan(10);
      expect(message?.length).toBeLessThan(4_096);
      expect(message).toMatch(ONE_PRINTABLE_LINE);
    }
    // A few of the shapes happen to be policies.
    expect(failed).toBeGreaterThan(shapes.length * 0.8);
    expect(kernel.table.states().size).toBe(shapes.length + 1);
    await plugin.startContainer(pod(), container('c1'));
    expect(boundState('c1')).toBe('enforced');
  });
});

describe('a container runtime', () => {
  it('that is gone makes the agent not ready, and what started meanwhile is bound and told when it is back', async () => {
    api.put('web', policySpec('/bin/server'));
    await Promise.all([runtime.serve([pod()], [container('old')]), agent.start()]);
    expect(health.ready()).toEqual([]);
    await runtime.close();
    await expect.poll(() => health.ready(), WITHIN).toEqual(['waiting for NRI synchronization to complete']);
    expect(health.live()).toEqual([]);
    expect(agent.sources.node()).toMatchObject({ runtimeConnected: false, attached: true });
    runtime = await startFakeRuntime({ socketPath: join(directory, 'nri.sock') });
    const plugin = await runtime.accept(WITHIN.timeout);
    await plugin.configure();
    await plugin.synchronize([pod()], [container('old'), container('meanwhile')]);
    await expect.poll(() => health.ready(), WITHIN).toEqual([]);
    expect([boundState('old'), boundState('meanwhile')]).toEqual(['enforced', 'enforced']);
    expect(metrics.counters.value('containers_bound_late')).toBe(2);
    await expect.poll(() => events.map(({ reason }) => reason), WITHIN).toContain('ContainerBoundLate');
  }, 20_000);

  it('with names of any kind is answered in time, in one printable line, and misleads no request to the API server', async () => {
    api.put('web', policySpec('/bin/server'));
    const [plugin] = await Promise.all([runtime.serve(), agent.start()]);
    const hostile = fc.oneof(
      fc.constantFrom(
        '',
        '\0',
        '../../secrets',
        '..',
        '__proto__',
        '*',
        '%2e%2e',
        'a/b?c=d',
        '\u202e\u001b[2J\n',
      ),
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.constant('x'.repeat(20_000)),
    );
    let ids = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.record({ name: hostile, namespace: hostile, uid: hostile, cgroupParent: hostile }),
        fc.record({ name: hostile, cgroupsPath: hostile, image: hostile }),
        fc.dictionary(hostile, hostile, { maxKeys: 3 }),
        fc.option(hostile, { nil: undefined }),
        async (podNames, containerNames, annotations, policy) => {
          const labels = new Map(Object.entries(annotations));
          if (policy !== undefined) labels.set(POLICY_LABEL, policy);
          const sandbox = pod({ ...podNames, labels, annotations: new Map(Object.entries(annotations)) });
          const made = container(`odd-${++ids}`, containerNames);
          const answer = await plugin.startContainer(sandbox, made).then(
            () => 'started',
            (error: unknown) => String(error),
          );
          if (policy === undefined) {
            expect(answer).toBe('started');
          } else {
            expect(answer).toContain('was prevented from starting by runtime-enforcer');
            expect(answer).toMatch(ONE_PRINTABLE_LINE);
            expect(answer.length).toBeLessThan(2_000);
          }
          await plugin.removeContainer(sandbox, made);
        },
      ),
      { numRuns: 80 },
    );
    await plugin.startContainer(pod(), container('c1'));
    expect(boundState('c1')).toBe('enforced');
    expect(server.requests.filter((request) => !KNOWN_REQUEST.test(request))).toEqual([]);
    for (const { message } of events) expect(message).toMatch(ONE_PRINTABLE_LINE);
  }, 30_000);
});
