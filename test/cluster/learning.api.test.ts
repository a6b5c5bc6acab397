import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterLearner } from '@runtime-enforcer/agent/learning/cluster-learner';
import type { OwnedWorkload } from '@runtime-enforcer/agent/learning/owner-chain';
import { createProposalWriter, type WriterTimings } from '@runtime-enforcer/agent/learning/proposal-writer';
import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import { PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { MAX_LEARNED_PATHS } from '@runtime-enforcer/api/limits';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { optimisticUpdate } from '@runtime-enforcer/kube/optimistic-update';
import {
  collectionPath,
  NAMESPACES,
  objectPath,
  PODS,
  type Resource,
} from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { agentGrants } from '../node/agent-rules.ts';
import { eventually } from '../runtime/eventually.ts';
import { type ControlPlane, type ServiceAccountClient, startControlPlane } from './control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from './custom-resources.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { type LearnerAgent, startLearnerAgent } from './learner-agent.ts';
import { allowedIn, FAST, localLearner, type LocalLearner } from './local-learner.ts';
import { syntheticContainer, type SyntheticPod } from './synthetic-exec.ts';

const DEPLOYMENTS: Resource = { group: 'apps', version: 'v1', plural: 'deployments' };
const REPLICA_SETS: Resource = { ...DEPLOYMENTS, plural: 'replicasets' };
const SELECTOR = '{"matchLabels":{"learn":"yes"}}';
const STORM_MS = 10_000;
const GROUP = WORKLOAD_POLICIES.group;
let plane: ControlPlane;
let proxy: FaultProxy;
let account: ServiceAccountClient;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  proxy = await startFaultProxy(plane);
  account = await plane.serviceAccount('enforcer', 'agent', {
    server: proxy.url,
    ...(await agentGrants()),
  });
});
afterAll(async () => {
  await proxy.stop();
  await plane.stop();
});

const agents: LearnerAgent[] = [];
const learners: ClusterLearner[] = [];
afterEach(async () => {
  proxy.setFault(undefined);
  for (const agent of agents.splice(0)) agent.kill();
  for (const learner of learners.splice(0)) await learner.stop();
});

async function create(resource: Resource, namespace: string | undefined, body: object): Promise<KubeObject> {
  const path = collectionPath(resource, namespace);
  return (await plane.admin.client.request({ method: 'POST', path, body })) as KubeObject;
}

async function namespaceOf(name: string, labels: Record<string, string> = { learn: 'yes' }): Promise<string> {
  await plane.serviceAccount(name, 'default');
  await labelNamespace(name, labels);
  return name;
}

async function labelNamespace(name: string, labels: Record<string, string | null>): Promise<void> {
  await plane.admin.client.request({
    method: 'PATCH',
    path: objectPath({ resource: NAMESPACES, name }),
    patchType: 'application/merge-patch+json',
    body: { metadata: { labels } },
  });
}

const template = (app: string) => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'example.org/web:1' }] },
});
const controlledBy = (kind: string, { metadata }: KubeObject) => ({
  ownerReferences: [
    { apiVersion: 'apps/v1', kind, name: metadata.name, uid: metadata.uid, controller: true },
  ],
});

/** A Deployment with its ReplicaSet, as their controllers would make them. */
async function deploy(
  namespace: string,
  app: string,
): Promise<{ deployment: KubeObject; replicaSet: KubeObject }> {
  const spec = { selector: { matchLabels: { app } }, template: template(app) };
  const deployment = await create(DEPLOYMENTS, namespace, { metadata: { name: app }, spec });
  const metadata = { name: `${app}-5d59d67564`, ...controlledBy('Deployment', deployment) };
  return { deployment, replicaSet: await create(REPLICA_SETS, namespace, { metadata, spec }) };
}

async function pod(namespace: string, name: string, app: string, owners: object): Promise<SyntheticPod> {
  const made = await create(PODS, namespace, {
    ...template(app),
    metadata: { name, labels: { app }, ...owners },
  });
  return { namespace, podName: name, podUid: made.metadata.uid ?? '' };
}

async function deployedPod(namespace: string, app: string): Promise<SyntheticPod> {
  const { replicaSet } = await deploy(namespace, app);
  return await pod(namespace, `${app}-1`, app, controlledBy('ReplicaSet', replicaSet));
}

const reference = (namespace: string, name: string) => ({
  resource: WORKLOAD_POLICY_PROPOSALS,
  namespace,
  name,
});

async function proposalOf(namespace: string, name: string): Promise<KubeObject | undefined> {
  try {
    return (await plane.admin.client.request({ path: objectPath(reference(namespace, name)) })) as KubeObject;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

const allowed = async (namespace: string, name: string) => allowedIn(await proposalOf(namespace, name));

async function hasPath(namespace: string, name: string, path: string): Promise<void> {
  await eventually(`${path} in ${name}`, async () =>
    (await allowed(namespace, name)).includes(path) ? true : undefined,
  );
}

async function agent(nodeName: string, writer: Partial<WriterTimings> = FAST): Promise<LearnerAgent> {
  const caData = Buffer.from(plane.credentials.authority.certificate).toString('base64');
  const { tokenFile } = account;
  const started = await startLearnerAgent({
    server: proxy.url,
    caData,
    tokenFile,
    nodeName,
    selector: SELECTOR,
    writer,
  });
  agents.push(started);
  return started;
}

function learnerHere(): LocalLearner {
  const local = localLearner(account.client, SELECTOR);
  learners.push(local.learner);
  return local;
}

describe('many agents', () => {
  it(
    'bring every path of 20 nodes into one proposal, whatever befalls their requests',
    { timeout: 180_000 },
    async () => {
      const namespace = await namespaceOf('union');
      const { deployment, replicaSet } = await deploy(namespace, 'web');
      const nodes = Array.from({ length: 20 }, (_, index) => `node-${index}`);
      const pods = await Promise.all(
        nodes.map(
          async (node) => await pod(namespace, `web-${node}`, 'web', controlledBy('ReplicaSet', replicaSet)),
        ),
      );
      // Each answer late by chance, so that later requests overtake; some get none, some an error.
      let requests = 0;
      proxy.setFault((line) => {
        requests++;
        if (line.includes('watch=')) return undefined;
        if (requests % 17 === 0) return 'cut';
        if (requests % 23 === 0) return { status: 500 };
        if (requests % 31 === 0) return { status: 429, headers: { 'retry-after': '1' } };
        return { delayMs: Math.random() * 400 };
      });
      const running = await Promise.all(nodes.map(async (node) => await agent(node)));
      const common = ['/bin/sh', '/bin/server', '/usr/bin/env'];
      const own = (index: number): string[] => [0, 1, 2, 3].map((turn) => `/opt/node-${index}/tool-${turn}`);
      for (const turn of [0, 1, 2, 3]) {
        await Promise.all(
          running.map(async (each, index) => {
            const place = pods[index];
            if (place === undefined) return;
            const paths = [...common, ...own(index).slice(0, turn + 1)];
            await each.tell({ execs: paths.map((path) => ({ ...place, path })) });
          }),
        );
        await sleep(Math.random() * 500);
      }
      const expected = new Set([...common, ...nodes.flatMap((_, index) => own(index))]);
      const found = await eventually(
        'every path',
        async () => {
          const paths = await allowed(namespace, 'deploy-web');
          return paths.length >= expected.size ? paths : undefined;
        },
        120_000,
      );
      expect(new Set(found)).toEqual(expected);
      expect(found).toHaveLength(expected.size);
      const proposal = await proposalOf(namespace, 'deploy-web');
      expect(proposal?.metadata['ownerReferences']).toEqual([
        {
          ...{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
          ...{ uid: deployment.metadata.uid, controller: true },
        },
      ]);
      proxy.setFault(undefined);
      const reports = await Promise.all(running.map(async (each) => await each.stop()));
      for (const { counts, state, observed, problems } of reports) {
        expect(counts['learned_paths_lost'] ?? 0, problems.join('\n')).toBe(0);
        expect([state.waiting, observed]).toEqual([0, 7]);
      }
    },
  );

  it('a thousand of them make no proposal grow beyond its paths', { timeout: 240_000 }, async () => {
    const namespace = await namespaceOf('writers');
    const { deployment } = await deploy(namespace, 'web');
    const workload: OwnedWorkload = {
      ...{ kind: 'Deployment', name: 'web', namespace, apiVersion: 'apps/v1', truncated: false },
      uid: deployment.metadata.uid ?? '',
    };
    const path = (index: number) => `/opt/${'x'.repeat(150)}/${index}` as ExecutablePath;
    let written = 0;
    const writeOnce = async (index: number): Promise<void> => {
      const settled = Promise.withResolvers<undefined>();
      const writer = createProposalWriter({
        client: plane.admin.client,
        isStopped: () => false,
        onSettled: () => settled.resolve(undefined),
        log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
        counters: { add: (name) => void (written += name === 'proposal_writes' ? 1 : 0), value: () => 0 },
        timings: { ...FAST, gatherMs: 1 },
      });
      writer.start();
      writer.offer('deploy-web', workload, { containerName: 'main', executablePath: path(index) });
      await settled.promise;
      await writer.stop();
    };
    // More at once would only wait for each other.
    const lanes = 4;
    for (let round = 0; round < 10; round++) {
      let next = 0;
      const lane = async (): Promise<void> => {
        while (next < MAX_LEARNED_PATHS) await writeOnce(round * MAX_LEARNED_PATHS + next++);
      };
      await Promise.all(Array.from({ length: lanes }, lane));
      const paths = await allowed(namespace, 'deploy-web');
      expect(paths).toHaveLength(MAX_LEARNED_PATHS);
      if (round === 9) continue;
      await optimisticUpdate({
        client: plane.admin.client,
        reference: reference(namespace, 'deploy-web'),
        fieldManager: 'somebody',
        change: (current) => ({ ...current, spec: { rulesByContainer: {} } }),
      });
    }
    expect(written).toBe(1_000);
    const now = new Date().toISOString();
    await optimisticUpdate({
      client: plane.admin.client,
      reference: { ...reference(namespace, 'deploy-web'), subresource: 'status' },
      fieldManager: 'runtime-enforcer-controller',
      change: (current) => ({
        ...current,
        status: {
          observations: allowedIn(current).map((executablePath) => ({
            ...{ containerName: 'main', executablePath, count: 1_000_000, firstSeen: now, lastSeen: now },
            origins: ['entrypoint', 'exec', 'probe'],
            pods: Array.from({ length: 10 }, (_, index) => `web-5d59d67564-pod${index}`),
            nodes: Array.from({ length: 10 }, (_, index) => `node-${index}.cluster.example.org`),
          })),
        },
      }),
    });
    const proposal = await proposalOf(namespace, 'deploy-web');
    expect((proposal?.metadata['managedFields'] as unknown[]).length).toBeLessThanOrEqual(3);
    const bytes = Buffer.byteLength(JSON.stringify(proposal));
    console.log(`a full proposal after ${written} writers has ${bytes} bytes`);
    expect(bytes).toBeLessThan(256 * 1_024);
  });

  it(
    'one of them learns 5,000 execs per second with few requests and a free loop',
    { timeout: 120_000 },
    async () => {
      const namespace = await namespaceOf('storm');
      const pods = await Promise.all(
        Array.from({ length: 5 }, async (_, index) => await deployedPod(namespace, `app-${index}`)),
      );
      const busy = await agent('busy', {});
      await sleep(1_000);
      const execs = pods.flatMap((place) =>
        Array.from({ length: MAX_LEARNED_PATHS }, (_, index) => ({ ...place, path: `/opt/tools/${index}` })),
      );
      const before = proxy.requests.length;
      const { loopHeldMs, cpuMs } = await busy.tell({
        execs,
        storm: { perSecond: 5_000, ms: STORM_MS },
      });
      const requests = proxy.requests.slice(before);
      const writes = requests.filter((line) => /^(POST|PUT)/.test(line));
      // What came last has had its turn by then.
      const { counts, state } = await eventually('nothing waits', async () => {
        const report = await busy.tell({});
        return report.state.waiting === 0 ? report : undefined;
      });
      console.log(
        `${STORM_MS / 1_000} s of 5,000 execs/s: ${counts['events_learned']} events, ${requests.length} requests, ${writes.length} writes, ` +
          `loop held p99 ${loopHeldMs.p99.toFixed(1)} ms, max ${loopHeldMs.max.toFixed(1)} ms, ${cpuMs.toFixed(0)} ms of CPU`,
      );
      expect(counts['events_learned']).toBeGreaterThan(4.5 * STORM_MS);
      for (const { podName } of pods) {
        expect(await allowed(namespace, `deploy-${podName.slice(0, -2)}`)).toHaveLength(MAX_LEARNED_PATHS);
      }
      expect(state.followed).toBe(500);
      expect(counts['learned_paths_lost'] ?? 0).toBe(0);
      expect(requests.length).toBeLessThan(60);
      expect(writes.length).toBeLessThan(20);
      expect(loopHeldMs.p99).toBeLessThan(10);
      expect(loopHeldMs.max).toBeLessThan(100);
      expect(cpuMs).toBeLessThan(0.5 * STORM_MS);
      await busy.stop();
    },
  );
});

describe('learning', () => {
  it('stops at the promote label, and goes on without it', async () => {
    const namespace = await namespaceOf('promoted');
    const web = await deployedPod(namespace, 'web');
    const { learner, exec, repeat } = learnerHere();
    await learner.start();
    exec(web, '/bin/server');
    await hasPath(namespace, 'deploy-web', '/bin/server');
    const label = async (value: string | null) =>
      await plane.admin.client.request({
        method: 'PATCH',
        path: objectPath(reference(namespace, 'deploy-web')),
        patchType: 'application/merge-patch+json',
        body: { metadata: { labels: { [PROMOTE_LABEL]: value } } },
      });
    await label('monitor');
    exec(web, '/bin/later');
    await sleep(1_500);
    expect(await allowed(namespace, 'deploy-web')).toEqual(['/bin/server']);
    await label(null);
    await eventually('the path after the label', async () => {
      repeat(web, '/bin/later');
      return (await allowed(namespace, 'deploy-web')).includes('/bin/later') ? true : undefined;
    });
  });

  it('stops with the policy, and goes on when that is deleted', async () => {
    const namespace = await namespaceOf('policy');
    const web = await deployedPod(namespace, 'web');
    await create(WORKLOAD_POLICIES, namespace, {
      apiVersion: `${GROUP}/v1alpha1`,
      kind: 'WorkloadPolicy',
      metadata: { name: 'deploy-web' },
      spec: { mode: 'monitor' },
    });
    const { learner, exec, repeat } = learnerHere();
    await learner.start();
    exec(web, '/bin/server');
    await sleep(1_500);
    expect(await proposalOf(namespace, 'deploy-web')).toBeUndefined();
    const path = objectPath({ resource: WORKLOAD_POLICIES, namespace, name: 'deploy-web' });
    await plane.admin.client.request({ method: 'DELETE', path });
    await eventually('the path after the policy', async () => {
      repeat(web, '/bin/server');
      return (await allowed(namespace, 'deploy-web')).includes('/bin/server') ? true : undefined;
    });
  });

  it('begins and ends with the labels of the namespace', async () => {
    const namespace = await namespaceOf('labelled', { learn: 'no' });
    const web = await deployedPod(namespace, 'web');
    const { learner, exec, containers } = learnerHere();
    containers.push(syntheticContainer(web));
    await learner.start();
    exec(web, '/bin/early');
    await sleep(1_500);
    expect(await proposalOf(namespace, 'deploy-web')).toBeUndefined();
    await labelNamespace(namespace, { learn: 'yes' });
    await hasPath(namespace, 'deploy-web', '/bin/runs');
    exec(web, '/bin/now');
    await hasPath(namespace, 'deploy-web', '/bin/now');
    await labelNamespace(namespace, { learn: null });
    await sleep(500);
    exec(web, '/bin/late');
    await sleep(1_500);
    expect(await allowed(namespace, 'deploy-web')).toEqual(['/bin/runs', '/bin/now']);
  });

  it('goes on through a restart of the API server, and through compaction', { timeout: 90_000 }, async () => {
    const namespace = await namespaceOf('restarted');
    const web = await deployedPod(namespace, 'web');
    const { learner, exec, counts } = learnerHere();
    await learner.start();
    exec(web, '/bin/one');
    await hasPath(namespace, 'deploy-web', '/bin/one');
    const restarting = plane.restartApiServer(1_000);
    exec(web, '/bin/two');
    await restarting;
    await hasPath(namespace, 'deploy-web', '/bin/two');
    await plane.compact();
    proxy.cutAll();
    exec(web, '/bin/three');
    await hasPath(namespace, 'deploy-web', '/bin/three');
    expect(counts.get('learned_paths_lost') ?? 0).toBe(0);
  });

  it('believes no pod that claims what is not so', async () => {
    const namespace = await namespaceOf('attacked');
    const bank = await namespaceOf('bank');
    const web = await deployedPod(namespace, 'web');
    const { replicaSet: elsewhere } = await deploy(bank, 'web');
    const here = await plane.admin.client.request({
      path: objectPath({ resource: REPLICA_SETS, namespace, name: 'web-5d59d67564' }),
    });
    const claims: SyntheticPod[] = [
      // Its name and labels are those of the Deployment's pods, and nothing controls it.
      await pod(namespace, 'web-5d59d67564-zzzzz', 'web', {
        labels: { app: 'web', 'pod-template-hash': '5d59d67564' },
      }),
      await pod(namespace, 'a', 'x', { labels: { 'pod-template-hash': '5d59d67564' } }),
      await pod(namespace, 'b', 'x', { labels: { 'statefulset.kubernetes.io/pod-name': 'nodash' } }),
      // Owners: of another namespace, with a uid that nothing has, and one that does not select it.
      await pod(namespace, 'c', 'web', controlledBy('ReplicaSet', elsewhere)),
      await pod(
        namespace,
        'd',
        'web',
        controlledBy('ReplicaSet', { metadata: { name: 'web-5d59d67564', uid: 'made-up' } }),
      ),
      await pod(namespace, 'e', 'other', controlledBy('ReplicaSet', here as KubeObject)),
      // Another pod's name.
      { ...web, podUid: 'earlier' },
    ];
    const { learner, exec, counts } = learnerHere();
    await learner.start();
    exec(web, '/bin/server');
    for (const claim of claims) exec(claim, '/bin/evil');
    await eventually('all refusals', () =>
      counts.get('learned_workloads_refused') === claims.length ? true : undefined,
    );
    await hasPath(namespace, 'deploy-web', '/bin/server');
    await sleep(1_000);
    for (const place of [namespace, bank]) {
      const { items } = (await plane.admin.client.request({
        path: collectionPath(WORKLOAD_POLICY_PROPOSALS, place),
      })) as { readonly items: readonly KubeObject[] };
      expect(items.flatMap(allowedIn)).toEqual(place === namespace ? ['/bin/server'] : []);
    }
  });

  it('says who may not read or write, and goes on when it may', async () => {
    const namespace = await namespaceOf('forbidden');
    const web = await deployedPod(namespace, 'web');
    const { learner, exec, counts, lines } = learnerHere();
    proxy.setFault((line) => (line.includes('/pods/') ? { status: 403 } : undefined));
    await learner.start();
    exec(web, '/bin/server');
    await eventually('a report', () => lines.find((line) => line.includes('pods and their owners')));
    proxy.setFault((line) => (line.startsWith('POST') ? { status: 403 } : undefined));
    await eventually('a failed write', () => ((counts.get('proposal_failures') ?? 0) > 0 ? true : undefined));
    proxy.setFault(undefined);
    await hasPath(namespace, 'deploy-web', '/bin/server');
  });
});
