import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { CertifiedKey } from '@runtime-enforcer/certs/authority';
import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import type { KeyPair } from '@runtime-enforcer/certs/key-pair';
import { createAgentClient } from '@runtime-enforcer/rpc/agent-client';
import type { WatchEvent, WatchOptions } from '@runtime-enforcer/rpc/agent-watch';
import type { NodeReport } from '@runtime-enforcer/rpc/reported';
import { testAuthority, testLog, testPair, testStore } from '@runtime-enforcer/rpc/rpc-fixture';
import { createObserverServer } from './observer-server.ts';
import { exampleContainer, exampleSources, examplePolicy, exampleViolation } from './observer-example.ts';

let authority: CertifiedKey;
let agentPair: KeyPair;
let controller: KeyPair;
let debuggers: KeyPair;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await testAuthority();
  agentPair = await testPair(authority, 'agent-1.enforcer');
  controller = await testPair(authority, 'controller');
  debuggers = await testPair(authority, 'debugger');
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function start() {
  const sources = exampleSources();
  const log = testLog();
  const server = createObserverServer({
    sources,
    host: '127.0.0.1',
    port: 0,
    certificates: testStore(agentPair),
    log,
    limits: { lookMs: 20, gatherMs: 5 },
  });
  const port = await server.start();
  stops.push(() => server.stop());
  const client = (pair: KeyPair) => {
    const made = createAgentClient({
      ...{ address: '127.0.0.1', port, podName: 'agent-1', namespace: 'enforcer' },
      certificates: testStore(pair),
    });
    stops.push(() => made.close());
    return made;
  };
  const watch = (options: Partial<WatchOptions> = {}) => {
    const ended = new AbortController();
    stops.push(() => ended.abort());
    const events = client(controller).watch({ signal: ended.signal, delayMs: () => 10, ...options });
    const next = async (): Promise<NodeReport> => reportOf(await events.next());
    return { events, next, end: () => ended.abort() };
  };
  return { sources, server, client, watch };
}

function reportOf({ value }: IteratorResult<WatchEvent, void>): NodeReport {
  if (value?.kind !== 'report') throw new Error(`expected a report, got ${JSON.stringify(value)}`);
  return value.report;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

describe('a watch', () => {
  it('tells everything at first, then only what changes', async () => {
    const { sources, watch } = await start();
    sources.states.set('shop/web', examplePolicy({ mode: 'protect' }));
    sources.violations.put('v1', exampleViolation({ occurrences: 2 }));
    const { next } = watch();
    const first = await next();
    expect(first.node).toMatchObject({ nodeName: 'node-1', attached: true });
    expect(first.policies).toMatchObject({ resync: true, removed: [], more: false });
    expect(first.policies?.policies).toEqual(
      new Map([['shop/web', { state: 'ready', mode: 'protect', message: '', digest: 'd1', paths: 3 }]]),
    );
    expect(first.violations).toMatchObject({
      resync: true,
      entries: [{ sequence: 1, previousCount: 0, value: { podName: 'web-1', occurrences: 2 } }],
    });
    expect(first.observations).toMatchObject({ resync: true, entries: [] });

    sources.violations.put('v1', exampleViolation({ occurrences: 7 }));
    const second = await next();
    expect(second).toEqual({
      violations: expect.objectContaining({
        resync: false,
        entries: [expect.objectContaining({ sequence: 2, previousCount: 2 })],
      }) as unknown,
    });

    sources.states.delete('shop/web');
    sources.states.set('shop/api', examplePolicy({ state: 'failed', message: 'the table is full' }));
    const third = await next();
    expect(third.policies).toMatchObject({ resync: false, removed: ['shop/web'] });
    expect(third.policies?.policies.get('shop/api')).toMatchObject({
      state: 'error',
      message: 'the table is full',
    });
    expect(third.node).toBeUndefined();

    sources.nodeState.degraded = 'boot with lsm=bpf';
    expect((await next()).node?.degraded).toBe('boot with lsm=bpf');
  });

  it('goes on behind its cursors, also on another connection', async () => {
    const { sources, watch } = await start();
    sources.states.set('shop/web', examplePolicy());
    sources.violations.put('v1', exampleViolation());
    const first = watch();
    const { policies, violations, observations } = await first.next();
    first.end();
    sources.violations.put('v2', exampleViolation({ podName: 'web-2' }));
    const second = watch({
      cursors: {
        ...(policies && { policies: policies.cursor }),
        ...(violations && { violations: violations.cursor }),
        ...(observations && { observations: observations.cursor }),
      },
    });
    const report = await second.next();
    expect(report.policies).toBeUndefined();
    expect(report.violations).toMatchObject({
      resync: false,
      entries: [{ sequence: 2, value: { podName: 'web-2' } }],
    });
  });

  it('begins anew for the cursors of another life', async () => {
    const { sources, watch } = await start();
    sources.states.set('shop/web', examplePolicy());
    sources.violations.put('v1', exampleViolation());
    const foreign = { incarnation: 'another life', sequence: 900 };
    const report = await watch({ cursors: { policies: foreign, violations: foreign } }).next();
    expect(report.policies).toMatchObject({ resync: true });
    expect(report.policies?.policies.size).toBe(1);
    expect(report.violations).toMatchObject({ resync: true, entries: [{ sequence: 1 }] });
  });

  it('destroys nothing, until it is acknowledged', async () => {
    const { sources, watch, client } = await start();
    sources.violations.put('v1', exampleViolation());
    sources.violations.remove('v1');
    const { violations } = await watch().next();
    expect((await watch().next()).violations?.entries).toHaveLength(1);
    const cursor = violations?.cursor ?? { incarnation: '', sequence: 0 };
    const caller = client(controller);
    await expect(
      caller.acknowledge({ violations: { ...cursor, incarnation: 'another life' } }),
    ).resolves.toMatchObject({ violationsAccepted: false });
    expect(sources.violations.size.keys).toBe(1);
    await expect(caller.acknowledge({ violations: cursor })).resolves.toEqual({
      violationsAccepted: true,
      observationsAccepted: false,
    });
    expect(sources.violations.size.keys).toBe(0);
  });

  it('tells ten thousand policies in pages, and then bytes', async () => {
    const { sources, watch } = await start();
    const digest = 'd'.repeat(64);
    for (let index = 0; index < 10_000; index++)
      sources.states.set(`namespace-${index % 100}/policy-${index}`, examplePolicy({ digest }));
    const { next } = watch();
    const told = new Set<string>();
    for (let page = 0; ; page++) {
      const { policies } = await next();
      expect(policies?.resync).toBe(page === 0);
      for (const key of policies?.policies.keys() ?? []) told.add(key);
      if (policies?.more !== true) break;
    }
    expect(told.size).toBe(10_000);
    sources.states.set('namespace-0/policy-0', examplePolicy({ digest: 'new' }));
    const { policies } = await next();
    expect([...(policies?.policies.keys() ?? [])]).toEqual(['namespace-0/policy-0']);
  });
});

describe('lists', () => {
  it('shows pods with their containers, by namespace and name, in pages', async () => {
    const { sources, client } = await start();
    for (let index = 0; index < 3_000; index++) {
      const podName = `pod-${String(index).padStart(4, '0')}`;
      for (const containerName of ['app', 'proxy']) {
        sources.bound.push(
          exampleContainer({
            podName,
            podUid: `uid-${index}`,
            containerId: `${index}-${containerName}`,
            containerName,
          }),
        );
      }
    }
    const pods = await all(client(debuggers).listPods());
    expect(pods.map(({ name }) => name)).toEqual(
      Array.from({ length: 3_000 }, (_, index) => `pod-${String(index).padStart(4, '0')}`),
    );
    expect(pods[7]?.containers.map(({ name }) => name)).toEqual(['app', 'proxy']);
    expect(pods[7]).toMatchObject({ uid: 'uid-7', workloadKind: 'Deployment', omitted: 0 });
    const one = await all(client(debuggers).listPods({ namespace: 'shop', podName: 'pod-0007' }));
    expect(one).toHaveLength(1);
    expect(await all(client(debuggers).listPods({ namespace: 'other' }))).toEqual([]);
  });

  it('leaves out what a tenant made too much of, and says how much', async () => {
    const { sources, client } = await start();
    const labels = new Map(Array.from({ length: 40_000 }, (_, index) => [`label-${index}`, 'x'.repeat(63)]));
    sources.bound.push(exampleContainer({ labels }));
    const [pod] = await all(client(debuggers).listPods());
    expect((pod?.labels.size ?? 0) + (pod?.omitted ?? 0)).toBe(40_000);
    expect(pod?.labels.size).toBeGreaterThan(100);
  });

  it('tells all that the kernel holds of containers, in pages', async () => {
    const { sources, client } = await start();
    const bindings = Array.from({ length: 3_000 }, (_, index) => ({
      ...{
        cgroupId: BigInt(Math.floor(index / 2)) + 2n ** 60n,
        slot: 3_000 + index,
        indexed: index % 2 === 0,
      },
      ...{ slotCgroupId: 0n, generation: 4_294_967_295, mountNamespace: 4_026_531_841, policyId: index },
      ...{ learning: index % 3 === 0, mode: index % 5 === 0 ? ('protect' as const) : ('unknown' as const) },
      namespaceIndexed: index % 7 !== 0,
    }));
    sources.inKernel.push(...bindings);
    expect(await all(client(debuggers).listBindings())).toEqual(bindings);
    await expect(client(controller).listBindings().next()).rejects.toMatchObject({ problem: 'forbidden' });
  });

  it('tells of a container what was written into the kernel, and the cgroup that is there now', async () => {
    const { sources, client } = await start();
    sources.bound.push(
      exampleContainer({ slot: 9, generation: 3, policyId: 7, mountNamespace: 4_026_532_000 }),
    );
    const [pod] = await all(client(debuggers).listPods());
    expect(pod?.containers).toEqual([
      expect.objectContaining({
        ...{ cgroupId: 7n, presentCgroupId: 7n },
        ...{ slot: 9, generation: 3, policyId: 7, mountNamespace: 4_026_532_000 },
      }),
    ]);
  });

  it('shows the policies of the node to both', async () => {
    const { sources, client } = await start();
    for (let index = 0; index < 5_000; index++)
      sources.states.set(`shop/policy-${index}`, examplePolicy({ message: 'm'.repeat(2_000) }));
    for (const pair of [controller, debuggers]) {
      const policies = await client(pair).listPoliciesStatus();
      expect(policies.size).toBe(5_000);
      expect(policies.get('shop/policy-9')?.message).toHaveLength(1_024);
    }
  });
});

describe('certificates from files', () => {
  it('are followed as they are replaced; a broken pair keeps the good one in use', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'observer-server-'));
    stops.push(() => rm(directory, { recursive: true }));
    const write = async (pair: Partial<KeyPair>): Promise<void> => {
      if (pair.certificate !== undefined) await writeFile(join(directory, 'tls.crt'), pair.certificate);
      if (pair.key !== undefined) await writeFile(join(directory, 'tls.key'), pair.key);
      if (pair.authorities !== undefined) await writeFile(join(directory, 'ca.crt'), pair.authorities);
    };
    await write(agentPair);
    const refused: string[] = [];
    const store = certificateStore({ directory, onRefused: (error) => refused.push(String(error)) });
    await store.start();
    stops.push(() => store.stop());
    const server = createObserverServer({
      sources: exampleSources(),
      ...{ host: '127.0.0.1', port: 0, certificates: store, log: testLog() },
    });
    const port = await server.start();
    server.setServing(true);
    stops.push(() => server.stop());
    const isServing = async (podName: string): Promise<boolean> => {
      const client = createAgentClient({
        ...{ address: '127.0.0.1', port, podName, namespace: 'enforcer' },
        certificates: testStore(controller),
      });
      return await client.isServing().finally(() => client.close());
    };
    await expect(isServing('agent-1')).resolves.toBe(true);

    const next = await testPair(authority, 'agent-2.enforcer');
    await write({ certificate: next.certificate });
    await store.reload();
    expect(refused.join()).toMatch(/the key is not that of tls\.crt/);
    await expect(isServing('agent-1')).resolves.toBe(true);

    await write({ key: next.key });
    await store.reload();
    await vi.waitFor(() => expect(isServing('agent-2')).resolves.toBe(true));
    await expect(isServing('agent-1')).rejects.toMatchObject({ problem: 'unreachable' });
  });
});
