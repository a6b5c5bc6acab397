import { ACKNOWLEDGE_ANNOTATION_PREFIX, POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { WorkloadPolicyStatus } from '@runtime-enforcer/api/workload-policy-status';
import type { ExportedEvent } from '@runtime-enforcer/telemetry/log-export';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../testing/eventually.ts';
import { type MemoryApi, memoryApi } from '../testing/memory-api.ts';
import { keptEvents, SILENT_LOG } from '../testing/silent.ts';
import { type FakeAgent, fakeAgent } from './fake-agent.ts';
import { statusOf } from './known-policy.ts';
import { createStatusLoop, type StatusLoop } from './status-loop.ts';

const INTERVAL_MS = 10;
const POLICIES = '/apis/runtimeenforcer.kubewarden.io/v1alpha1/namespaces/shop/workloadpolicies';
const NOW = new Date().toISOString();

/** A cluster in this process: nodes with agents, and pods of the policy `web` on each. */
function createCluster(nodeNames: readonly string[]) {
  const api = memoryApi();
  const agents = new Map<string, FakeAgent>();
  const events = keptEvents();
  const emitted: ExportedEvent[] = [];
  const loops = new Set<StatusLoop>();
  /** How looks at policies ended. */
  const looks: string[] = [];
  for (const nodeName of nodeNames) {
    agents.set(nodeName, fakeAgent(nodeName));
    api.put(`/api/v1/namespaces/runtime-enforcer/pods/agent-${nodeName}`, {
      metadata: { labels: { app: 'agent' } },
      spec: { nodeName },
      status: { phase: 'Running', podIP: '127.0.0.1' },
    });
    api.put(`/api/v1/namespaces/shop/pods/web-${nodeName}`, pod(nodeName));
  }
  return {
    api,
    events,
    emitted,
    looks,
    agent: (nodeName: string): FakeAgent => {
      const agent = agents.get(nodeName);
      if (agent === undefined) throw new Error(`there is no node ${nodeName}`);
      return agent;
    },
    start(): StatusLoop {
      const loop = createStatusLoop({
        client: api.client,
        events: events.recorder,
        log: SILENT_LOG,
        namespace: 'runtime-enforcer',
        agentSelector: 'app=agent',
        agentPort: 1,
        intervalMs: INTERVAL_MS,
        emit: (event) => void emitted.push(event),
        metrics: {
          write: (kind, outcome) => kind === 'policy' && looks.push(outcome),
          ...{ round: () => undefined, merged: () => undefined, refused: () => undefined },
        },
        timings: { backOff: { baseMs: 1, maxMs: 2, jitter: 0 } },
        connect: ({ nodeName }) => {
          const agent = agents.get(nodeName);
          if (agent === undefined) throw new Error(`there is no node ${nodeName}`);
          return agent.connect();
        },
      });
      loops.add(loop);
      loop.start();
      return loop;
    },
    async stop() {
      await Promise.all([...loops].map(async (loop) => await loop.stop()));
    },
    status: (name = 'web'): WorkloadPolicyStatus =>
      statusOf(api.get(`${POLICIES}/${name}`) ?? { metadata: { name } }),
  };
}

function pod(nodeName: string, policy = 'web') {
  return {
    metadata: { labels: { [POLICY_LABEL]: policy } },
    spec: { nodeName },
    status: { phase: 'Running' },
  };
}

function putPolicy(api: MemoryApi, name = 'web', annotations: Record<string, string> = {}) {
  const path = `${POLICIES}/${name}`;
  const status = api.get(path)?.['status'];
  api.put(path, {
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { generation: 1, annotations },
    spec: { mode: 'protect', rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
    ...(status !== undefined && { status }),
  });
}

const violation = (nodeName: string, changed: Partial<Parameters<FakeAgent['violate']>[0]> = {}) => ({
  namespace: 'shop',
  policyName: 'web',
  podName: `web-${nodeName}`,
  containerName: 'app',
  executablePath: '/bin/sh',
  nodeName,
  action: 'protect' as const,
  firstObservedTimestamp: NOW,
  lastObservedTimestamp: NOW,
  ...changed,
});

let cluster: ReturnType<typeof createCluster>;
afterEach(async () => await cluster.stop());

describe('nodes', () => {
  it('are ready, failing, changing or missing, and their states are written once', async () => {
    cluster = createCluster(['n1', 'n2', 'n3', 'n4']);
    const { api, agent } = cluster;
    putPolicy(api);
    agent('n1').setPolicy('shop/web', {});
    agent('n2').setPolicy('shop/web', { state: 'error', message: 'no room' });
    agent('n3').setPolicy('shop/web', { mode: 'monitor' });
    agent('n4').setReachable(false);
    cluster.start();
    await eventually('there is a status', () => cluster.status().totalNodes === 4);
    const { nodesWithIssues, nodesTransitioning, phase, successfulNodes } = cluster.status();
    expect({ phase, successfulNodes }).toEqual({ phase: 'Failed', successfulNodes: 1 });
    expect(nodesWithIssues.get('n2')).toMatchObject({ code: 'Failed', message: 'no room' });
    expect(nodesWithIssues.get('n4')).toMatchObject({
      code: 'Missing',
      message: 'the agent agent-n4 cannot be reached',
    });
    expect(nodesTransitioning).toMatchObject([{ nodeName: 'n3', code: 'Transitioning' }]);
    const writes = (): number => api.requests.filter((request) => !request.startsWith('GET')).length;
    const before = writes();
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS * 20));
    expect(writes()).toBe(before);

    agent('n2').setPolicy('shop/web', {});
    agent('n3').setPolicy('shop/web', {});
    agent('n4').setPolicy('shop/web', {});
    agent('n4').setReachable(true);
    await eventually('all are ready', () => cluster.status().phase === 'Ready');
    expect(cluster.status().conditions).toMatchObject([
      { type: 'Ready', status: 'True' },
      { type: 'Progressing', status: 'False' },
      { type: 'Degraded', status: 'False' },
    ]);
    expect(cluster.events.notes.map(({ reason }) => reason)).toEqual(['PolicyFailed', 'PolicyReady']);
  });

  it('that run pods of the policy without an agent are missing, and no others', async () => {
    cluster = createCluster(['n1']);
    const { api, agent } = cluster;
    putPolicy(api);
    agent('n1').setPolicy('shop/web', {});
    api.put('/api/v1/namespaces/shop/pods/web-far', pod('far'));
    api.put('/api/v1/namespaces/shop/pods/other-far', pod('elsewhere', 'other'));
    cluster.start();
    await eventually('there is a status', () => cluster.status().totalNodes === 2);
    expect([...cluster.status().nodesWithIssues.keys()]).toEqual(['far']);
    api.remove('/api/v1/namespaces/shop/pods/web-far');
    await eventually('the node does not count any more', () => cluster.status().phase === 'Ready');
  });

  it('whose agent speaks for another node are missing', async () => {
    cluster = createCluster(['n1']);
    putPolicy(cluster.api);
    cluster.agent('n1').setPolicy('shop/web', {});
    cluster.agent('n1').setNode({ nodeName: 'n9' });
    cluster.agent('n1').violate(violation('n9', { podName: 'web-n1' }), 1);
    cluster.start();
    await eventually('there is a status', () => cluster.status().totalNodes === 1);
    expect(cluster.status().nodesWithIssues.get('n1')?.message).toContain('on another node');
    expect(cluster.status().violationCount).toBe(0);
  });

  it('are not looked at again when the watch tells of what was written here, but of what others write', async () => {
    cluster = createCluster(['n1']);
    const { api, agent, looks } = cluster;
    putPolicy(api);
    agent('n1').setPolicy('shop/web', {});
    cluster.start();
    await eventually('it is ready', () => cluster.status().phase === 'Ready');
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS * 20));
    expect(looks.at(-1)).toBe('written');
    const before = looks.length;
    const path = `${POLICIES}/web`;
    api.put(path, { ...api.get(path), status: {} });
    await eventually('its status is there again', () => cluster.status().phase === 'Ready');
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS * 20));
    expect(looks.slice(before)).toEqual(['written']);
  });
});

describe('violations', () => {
  it('are acknowledged to the agent after they are written, and to the user by an annotation', async () => {
    cluster = createCluster(['n1', 'n2']);
    const { api, agent } = cluster;
    putPolicy(api);
    let isRefusing = true;
    api.intercept = (moment, { path, method }) => {
      if (isRefusing && moment === 'before' && method === 'PUT') throw new Error(`refused: ${path}`);
    };
    agent('n1').violate(violation('n1'), 3);
    agent('n2').violate(violation('n2', { executablePath: '/bin/ls' }), 2);
    cluster.start();
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS * 10));
    expect(agent('n1').acknowledged.sequence).toBe(0);
    isRefusing = false;
    await eventually('it is stored', () => cluster.status().violationCount === 5);
    await eventually('it is acknowledged', () => agent('n1').acknowledged.sequence === 1);
    const { violations } = cluster.status();
    expect(violations.map(({ podName, occurrences }) => [podName, occurrences]).sort()).toEqual([
      ['web-n1', 3],
      ['web-n2', 2],
    ]);
    const id = violations.find(({ podName }) => podName === 'web-n1')?.id ?? -1;
    putPolicy(api, 'web', {
      [`${ACKNOWLEDGE_ANNOTATION_PREFIX}${id}`]: 'a test',
      [`${ACKNOWLEDGE_ANNOTATION_PREFIX}99`]: 'none',
    });
    await eventually('it is acknowledged', () => cluster.status().acknowledgedViolations.length === 1);
    expect(cluster.status()).toMatchObject({ activeViolationCount: 1, violationCount: 5 });
    await eventually(
      'the annotations are gone',
      () => Object.keys(api.get(`${POLICIES}/web`)?.metadata.annotations ?? {}).length === 0,
    );
    expect(cluster.emitted).toMatchObject([
      {
        name: 'policy_violation_acknowledged',
        attributes: { id, reason: 'a test', 'k8s.pod.name': 'web-n1' },
      },
    ]);
    const reasons = cluster.events.notes.map(({ reason }) => reason);
    expect(reasons).toContain('PolicyViolation');
    expect(reasons).toContain('ViolationAcknowledged');
    expect(reasons).toContain('NoSuchViolation');
  });

  it('are believed of pods of the own node only', async () => {
    cluster = createCluster(['n1', 'n2']);
    const { api, agent } = cluster;
    putPolicy(api);
    putPolicy(api, 'other');
    api.put('/api/v1/namespaces/shop/pods/other-n1', pod('n1', 'other'));
    agent('n1').violate(violation('n1', { podName: 'web-n2' }), 100);
    agent('n1').violate(violation('n2'), 100);
    agent('n1').violate(violation('n1', { podName: 'other-n1' }), 100);
    agent('n1').violate(violation('n1'), 1);
    // A pod that is gone counts, because the node runs pods of the policy.
    agent('n1').violate(violation('n1', { podName: 'web-gone' }), 1);
    cluster.start();
    await eventually('what is true is stored', () => cluster.status().violationCount === 2);
    await eventually('all is acknowledged', () => agent('n1').acknowledged.sequence === 5);
    expect(cluster.status('other').violationCount).toBe(0);
  });

  it('of one policy whose status is refused keep no other back', async () => {
    cluster = createCluster(['n1']);
    const { api, agent } = cluster;
    for (const name of ['bad', 'web']) putPolicy(api, name);
    api.put('/api/v1/namespaces/shop/pods/bad-n1', pod('n1', 'bad'));
    api.intercept = (moment, { path, method }) => {
      if (moment === 'before' && method === 'PUT' && path.includes('/bad/')) throw new Error('refused');
    };
    agent('n1').violate(violation('n1', { policyName: 'bad', podName: 'bad-n1' }), 1);
    agent('n1').violate(violation('n1'), 1);
    cluster.start();
    await eventually('the other is stored', () => cluster.status().violationCount === 1);
    expect(agent('n1').acknowledged.sequence).toBe(0);
  });
});

/** What happens while controllers come and go. */
type Step =
  | { readonly kind: 'violation'; readonly node: number; readonly path: number; readonly times: number }
  | { readonly kind: 'waits'; readonly ms: number }
  /** Of the next writes, by what becomes of them. */
  | { readonly kind: 'writesFail'; readonly moment: 'before' | 'after'; readonly times: number }
  | { readonly kind: 'controllerDies' }
  | { readonly kind: 'agentStartsAnew'; readonly node: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('violation' as const),
      node: fc.nat(1),
      path: fc.nat(2),
      times: fc.integer({ min: 1, max: 9 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('waits' as const), ms: fc.nat(INTERVAL_MS * 3) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('writesFail' as const),
      moment: fc.constantFrom('before' as const, 'after' as const),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('controllerDies' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('agentStartsAnew' as const), node: fc.nat(1) }) },
);

it('counts every violation once, whoever dies and whichever write fails', async () => {
  const nodes = ['n1', 'n2'];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      cluster = createCluster(nodes);
      const { api } = cluster;
      putPolicy(api);
      const failing = { moment: 'before' as 'before' | 'after', times: 0, isDead: false };
      api.intercept = (moment, { method }) => {
        if (method !== 'PUT') return;
        if (failing.isDead && moment === 'before') throw new Error('dead');
        if (moment !== failing.moment || failing.times === 0) return;
        failing.times--;
        throw new Error('lost');
      };
      const truth = new Map<string, number>();
      let loop = cluster.start();
      const nameOf = (node: number): string => nodes[node] ?? '';
      const isStored = (node: string): boolean =>
        cluster
          .status()
          .mergedFrom.some(
            ({ nodeName, incarnation, sequence }) =>
              nodeName === node &&
              incarnation === cluster.agent(node).end.incarnation &&
              sequence === cluster.agent(node).end.sequence,
          );
      const storeAll = async (): Promise<void> => {
        for (const node of nodes) {
          await eventually('all is stored', () => cluster.agent(node).end.sequence === 0 || isStored(node));
        }
      };
      for (const taken of steps) {
        switch (taken.kind) {
          case 'violation': {
            const node = nameOf(taken.node);
            const key = `${node} /bin/${taken.path}`;
            truth.set(key, (truth.get(key) ?? 0) + taken.times);
            cluster
              .agent(node)
              .violate(violation(node, { executablePath: `/bin/${taken.path}` }), taken.times);
            break;
          }
          case 'waits':
            await new Promise((resolve) => setTimeout(resolve, taken.ms));
            break;
          case 'writesFail':
            Object.assign(failing, { moment: taken.moment, times: taken.times });
            break;
          case 'controllerDies':
            failing.isDead = true;
            await loop.stop();
            failing.isDead = false;
            loop = cluster.start();
            break;
          case 'agentStartsAnew':
            await storeAll();
            cluster.agent(nameOf(taken.node)).startAnew();
        }
      }
      await storeAll();
      const { violations, violationCount } = cluster.status();
      const counted = new Map(
        violations.map(({ nodeName, executablePath, occurrences }) => [
          `${nodeName} ${executablePath}`,
          occurrences,
        ]),
      );
      expect(counted).toEqual(truth);
      expect(violationCount).toBe([...truth.values()].reduce((sum, times) => sum + times, 0));
      await cluster.stop();
    }),
    { numRuns: 40, endOnFailure: true },
  );
}, 120_000);
