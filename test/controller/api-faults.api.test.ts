import { API_VERSION, PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { statusOf } from '@runtime-enforcer/controller/status/known-policy';
import { collectionPath, NAMESPACES, objectPath, type Resource } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { type FaultProxy, startFaultProxy } from '../cluster/fault-proxy.ts';
import { freePorts } from '../cluster/port.ts';
import { eventually } from '../runtime/eventually.ts';
import { type ControllerPlace, controllerPlace, type ControllerProcess } from './controller-process.ts';
import { objectOf, propose } from './proposals.ts';
import { createAgentPod, createBoundPod, type SimulatedAgent, simulatedAgent } from './simulated-agents.ts';

const NAMESPACE = 'shop';
const NODE = 'node-0';
/** Of a controller that asks again and again, instead of waiting. */
const MANY_REQUESTS = 100;
/** Who was refused again and again asks after a minute at the latest, and needs two answers. */
const RECOVERS_MS = 150_000;

let plane: ControlPlane;
let proxy: FaultProxy;
let place: ControllerPlace;
let controller: ControllerProcess;
let agent: SimulatedAgent;
let made = 0;

beforeAll(async () => {
  plane = await startControlPlane();
  const { client } = plane.admin;
  await installCustomResources(client);
  await plane.serviceAccount(NAMESPACE, 'default');
  proxy = await startFaultProxy(plane);
  place = await controllerPlace(plane);
  const [port = 0] = await freePorts(1);
  agent = await simulatedAgent({ authority: plane.credentials.authority, index: 0, port });
  await agent.start();
  await createAgentPod(client, agent);
  controller = await place.start({
    server: proxy.url,
    args: [
      `--wp-status-reconciler-agent-grpc-port=${port}`,
      '--wp-status-reconciler-update-interval=100ms',
      '--log-level=warn',
    ],
  });
  await controller.ready();
});
afterEach(() => {
  proxy.setFault(undefined);
  controller.assertRunning();
});
afterAll(async () => {
  await place.stop();
  await agent.stop();
  await proxy.stop();
  await plane.stop();
});

const fresh = (): string => `deploy-${++made}`;

async function createPolicy(name: string, namespace = NAMESPACE): Promise<void> {
  const body = {
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name },
    spec: { mode: 'protect', rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
  };
  const path = collectionPath(WORKLOAD_POLICIES, namespace);
  await plane.admin.client.request({ method: 'POST', path, body });
}

async function boundPolicy(): Promise<string> {
  const policy = fresh();
  await createPolicy(policy);
  const pod = { namespace: NAMESPACE, name: `${policy}-1`, nodeName: NODE, policy };
  await createBoundPod(plane.admin.client, pod);
  return policy;
}

/** @param occurrences all so far */
function violate(policy: string, occurrences: number, observed = new Date()): void {
  const time = observed.toISOString();
  agent.violations.put(policy, {
    ...{ namespace: NAMESPACE, policyName: policy, podName: `${policy}-1`, containerName: 'app' },
    ...{ executablePath: '/bin/sh', nodeName: NODE, action: 'protect', reason: 'Unlisted', occurrences },
    ...{ firstObservedTimestamp: time, lastObservedTimestamp: time },
  });
}

async function statusNow(policy: string) {
  const object = await objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, policy);
  return object && statusOf(object);
}

const isCounted = async (policy: string, count: number): Promise<true> =>
  await eventually(
    `${policy} has counted ${count}`,
    async () => ((await statusNow(policy))?.violationCount === count ? true : undefined),
    RECOVERS_MS,
  );

const isPromoted = async (name: string, namespace = NAMESPACE): Promise<true> =>
  await eventually(
    `${name} is promoted`,
    async () => {
      const policy = await objectOf(plane.admin.client, WORKLOAD_POLICIES, namespace, name);
      const rest = await objectOf(plane.admin.client, WORKLOAD_POLICY_PROPOSALS, namespace, name);
      return policy !== undefined && rest === undefined ? true : undefined;
    },
    RECOVERS_MS,
  );

const remove = async (resource: Resource, name: string) =>
  await plane.admin.client.request({
    method: 'DELETE',
    path: objectPath({ resource, namespace: NAMESPACE, name }),
  });

describe('an API server', () => {
  it('that is restarted is told everything once', { timeout: 240_000 }, async () => {
    const policy = await boundPolicy();
    violate(policy, 1);
    await isCounted(policy, 1);
    const restarted = plane.restartApiServer(2_000);
    for (let occurrences = 2; occurrences <= 10; occurrences++) {
      violate(policy, occurrences);
      await sleep(200);
    }
    await restarted;
    const name = fresh();
    await propose(plane.admin.client, NAMESPACE, name, 'monitor');
    await isCounted(policy, 10);
    await isPromoted(name);
  });

  it('that has forgotten what happened meanwhile is asked anew', { timeout: 240_000 }, async () => {
    const gone = await boundPolicy();
    violate(gone, 1);
    await isCounted(gone, 1);
    proxy.setFault(() => 'cut');
    proxy.cutAll();
    await remove(WORKLOAD_POLICIES, gone);
    const [came, name] = [await boundPolicy(), fresh()];
    violate(came, 3);
    await propose(plane.admin.client, NAMESPACE, name, 'protect');
    await plane.compact();
    await plane.restartApiServer();
    proxy.setFault(undefined);
    await isCounted(came, 3);
    await isPromoted(name);
  });

  it.each([
    ['throttles', { status: 429, headers: { 'retry-after': '1' } }],
    ['fails', { status: 500 }],
    ['does not answer', 'stall' as const],
    ['is cut off', 'cut' as const],
  ])(
    'that %s is not stormed, and is told everything once when it works again',
    { timeout: 240_000 },
    async (_, fault) => {
      const policy = await boundPolicy();
      violate(policy, 1);
      await isCounted(policy, 1);
      const before = proxy.requests.length;
      proxy.setFault(() => fault);
      proxy.cutAll();
      const name = fresh();
      await propose(plane.admin.client, NAMESPACE, name, 'monitor');
      for (let occurrences = 2; occurrences <= 30; occurrences++) {
        violate(policy, occurrences);
        await sleep(100);
      }
      expect(proxy.requests.length - before).toBeLessThan(MANY_REQUESTS);
      proxy.setFault(undefined);
      proxy.cutAll();
      await isCounted(policy, 30);
      await isPromoted(name);
    },
  );

  it('whose answers are lost counts nothing twice', { timeout: 240_000 }, async () => {
    const policy = await boundPolicy();
    // It may still be waiting to ask after what was wrong before.
    violate(policy, 1);
    await isCounted(policy, 1);
    let writes = 0;
    proxy.setFault((request) =>
      request.includes(`${policy}/status`) && ++writes % 2 === 1 ? 'lost answer' : undefined,
    );
    for (let occurrences = 2; occurrences <= 20; occurrences++) {
      violate(policy, occurrences);
      await sleep(150);
    }
    await isCounted(policy, 20);
    expect(writes).toBeGreaterThan(1);
    await eventually('the agent may forget it', () =>
      agent.violations.acknowledged === agent.violations.sequence ? true : undefined,
    );
    expect((await statusNow(policy))?.violationCount).toBe(20);
  });
});

describe('what is deleted mid-way', () => {
  it('is no trouble: a policy, between what is told of it', { timeout: 120_000 }, async () => {
    const policy = await boundPolicy();
    for (let occurrences = 1; occurrences <= 40; occurrences++) {
      violate(policy, occurrences);
      if (occurrences % 10 === 0) await remove(WORKLOAD_POLICIES, policy);
      if (occurrences % 10 === 5 && occurrences > 5) await createPolicy(policy);
      await sleep(30);
    }
    await createPolicy(policy);
    violate(policy, 41);
    const status = await eventually('it is told of the last one', async () => {
      const current = await statusNow(policy);
      return (current?.violationCount ?? 0) > 0 ? current : undefined;
    });
    expect(status.violationCount).toBeLessThanOrEqual(41);
    await eventually('nothing waits any more', () =>
      agent.violations.acknowledged === agent.violations.sequence ? true : undefined,
    );
  });

  it('is no trouble: proposals that are being promoted', { timeout: 120_000 }, async () => {
    const names = Array.from({ length: 30 }, fresh);
    for (const [at, name] of names.entries()) {
      await propose(plane.admin.client, NAMESPACE, name, 'monitor');
      await sleep(at % 6);
      await remove(WORKLOAD_POLICY_PROPOSALS, name).catch(() => undefined);
    }
    const last = fresh();
    await propose(plane.admin.client, NAMESPACE, last, 'monitor');
    await isPromoted(last);
    for (const name of names) {
      const policy = await objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, name);
      // Whole, or not there.
      if (policy !== undefined) expect(policy['spec']).toHaveProperty('rulesByContainer');
    }
  });

  it('is left alone: a namespace that ends', { timeout: 120_000 }, async () => {
    const { client } = plane.admin;
    await plane.serviceAccount('ending', 'default');
    await propose(client, 'ending', 'deploy-late');
    await createPolicy('stays', 'ending');
    // Nothing takes its contents away where no controller manager runs.
    await client.request({ method: 'DELETE', path: objectPath({ resource: NAMESPACES, name: 'ending' }) });
    await client.request({
      method: 'PATCH',
      path: objectPath({ resource: WORKLOAD_POLICY_PROPOSALS, namespace: 'ending', name: 'deploy-late' }),
      patchType: 'application/merge-patch+json',
      body: { metadata: { labels: { [PROMOTE_LABEL]: 'monitor' } } },
    });
    const name = fresh();
    await propose(client, NAMESPACE, name, 'monitor');
    await isPromoted(name);
    await sleep(2_000);
    const creations = (): number =>
      proxy.requests.filter(
        (each) => each.startsWith('POST') && each.includes('/namespaces/ending/workloadpolicies'),
      ).length;
    const before = creations();
    await sleep(2_000);
    expect(before).toBeGreaterThan(0);
    expect(creations() - before).toBeLessThanOrEqual(2);
    expect(await objectOf(client, WORKLOAD_POLICIES, 'ending', 'deploy-late')).toBeUndefined();
  });
});

describe('a node whose clock', () => {
  it.each([
    ['an hour ahead', 3_600_000],
    ['years ahead', 30 * 365 * 86_400_000],
    ['half a minute behind', -30_000],
  ])('is %s is told of, with a time that is not ahead', { timeout: 120_000 }, async (_, skewMs) => {
    const policy = await boundPolicy();
    violate(policy, 1, new Date(Date.now() + skewMs));
    await isCounted(policy, 1);
    const [record] = (await statusNow(policy))?.violations ?? [];
    expect(Date.parse(record?.lastObservedTimestamp ?? '')).toBeLessThanOrEqual(Date.now());
  });
});
