import { setTimeout as sleep } from 'node:timers/promises';
import { ACKNOWLEDGE_ANNOTATION_PREFIX } from '@runtime-enforcer/api/keys';
import { policyDigest } from '@runtime-enforcer/api/policy-digest';
import { parseWorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { WorkloadPolicyStatus } from '@runtime-enforcer/api/workload-policy-status';
import { statusOf } from '@runtime-enforcer/controller/status/known-policy';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, objectPath } from '@runtime-enforcer/kube/resource-path';
import type { ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { freePorts } from '../cluster/port.ts';
import { eventually } from '../runtime/eventually.ts';
import { type ControllerPlace, controllerPlace, type ControllerProcess } from './controller-process.ts';
import { objectOf, propose } from './proposals.ts';
import {
  createAgentPod,
  createBoundPod,
  createPodOnNode,
  type SimulatedAgent,
  simulatedAgent,
} from './simulated-agents.ts';

const NAMESPACE = 'shop';
const NODES = 3;
const POLICIES = ['web', 'db'];
const PATHS = 4;
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
/** How often the controller is killed; a longer run is asked for by KILLS. */
const KILLS = Number(process.env['KILLS'] ?? 15);
const KILL_BUDGET_MS = 20_000;

let plane: ControlPlane;
let place: ControllerPlace;
let port: number;
const agents: SimulatedAgent[] = [];

beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  await plane.serviceAccount(NAMESPACE, 'default');
  place = await controllerPlace(plane);
  [port = 0] = await freePorts(1);
  const { client } = plane.admin;
  for (let index = 0; index < NODES; index++) {
    const agent = await simulatedAgent({ authority: plane.credentials.authority, index, port });
    agents.push(agent);
    await agent.start();
    await createAgentPod(client, agent);
  }
  for (const name of POLICIES) {
    const policy = await createPolicy(name);
    for (const agent of agents) {
      agent.policies.set(`${NAMESPACE}/${name}`, {
        state: 'ready',
        mode: 'protect',
        paths: 1,
        digest: digestOf(policy),
      });
      await createBoundPod(client, {
        namespace: NAMESPACE,
        name: `${name}-${agent.nodeName}`,
        nodeName: agent.nodeName,
        policy: name,
      });
    }
  }
});
afterAll(async () => {
  await place.stop();
  for (const agent of agents) await agent.stop();
  await plane.stop();
});

async function createPolicy(name: string): Promise<KubeObject> {
  return (await plane.admin.client.request({
    method: 'POST',
    path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
    body: {
      apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
      kind: 'WorkloadPolicy',
      metadata: { name },
      spec: { mode: 'protect', rulesByContainer: { app: { executables: { allowed: ['/app'] } } } },
    },
  })) as KubeObject;
}

function digestOf({ apiVersion, kind, metadata: { name, namespace }, spec }: KubeObject): string {
  const parsed = parseWorkloadPolicy({ apiVersion, kind, metadata: { name, namespace }, spec });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return policyDigest(parsed.value.spec);
}

async function statusNow(name: string): Promise<WorkloadPolicyStatus> {
  const policy = await objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, name);
  if (policy === undefined) throw new Error(`there is no policy ${name}`);
  return statusOf(policy);
}

async function startController(): Promise<ControllerProcess> {
  return await place.start({
    args: [
      `--wp-status-reconciler-agent-grpc-port=${port}`,
      '--wp-status-reconciler-update-interval=100ms',
      '--log-level=warn',
    ],
  });
}

function violationOf(
  agent: SimulatedAgent,
  policyName: string,
  path: number,
  occurrences: number,
): ReportedViolation {
  const now = new Date().toISOString();
  return {
    namespace: NAMESPACE,
    policyName,
    podName: `${policyName}-${agent.nodeName}`,
    containerName: 'app',
    executablePath: `/bin/${path}`,
    nodeName: agent.nodeName,
    action: 'protect',
    reason: 'Unlisted',
    occurrences,
    firstObservedTimestamp: now,
    lastObservedTimestamp: now,
  };
}

/** The same numbers for the same seed. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('one controller', () => {
  let controller: ControllerProcess;
  beforeAll(async () => {
    controller = await startController();
    await controller.ready();
  });
  afterAll(async () => await controller.stop());

  it('tells how far every node is, with the rights of the chart alone', async () => {
    const ready = await eventually('all nodes are ready', async () => {
      const status = await statusNow('web');
      return status.phase === 'Ready' ? status : undefined;
    });
    expect(ready).toMatchObject({ totalNodes: NODES, successfulNodes: NODES, observedGeneration: 1 });
    const [first] = agents;
    await first?.stop();
    const failed = await eventually('the node is missing', async () => {
      const status = await statusNow('web');
      return status.phase === 'Failed' ? status : undefined;
    });
    expect(failed.nodesWithIssues.get('node-0')).toMatchObject({
      code: 'Missing',
      message: 'the agent agent-0 cannot be reached',
    });
    await first?.start();
    await eventually('it is ready again', async () =>
      (await statusNow('web')).phase === 'Ready' ? true : undefined,
    );
  });

  it('writes nothing while nothing changes', async () => {
    const version = async (): Promise<unknown> =>
      (await objectOf(plane.admin.client, WORKLOAD_POLICIES, NAMESPACE, 'web'))?.metadata.resourceVersion;
    const before = await version();
    await sleep(2_000);
    expect(await version()).toBe(before);
  });

  it('records a violation, and moves it when the user acknowledges it', async () => {
    const { client } = plane.admin;
    await createPolicy('ack');
    await createBoundPod(client, {
      namespace: NAMESPACE,
      name: 'ack-node-1',
      nodeName: 'node-1',
      policy: 'ack',
    });
    const [, agent] = agents;
    if (agent === undefined) throw new Error('there is no node');
    agent.violations.put('ack', violationOf(agent, 'ack', 0, 3));
    // A pod of another node, and another tenant's.
    agent.violations.put('lie', { ...violationOf(agent, 'web', 0, 1_000), podName: 'web-node-0' });
    const [record] = await eventually('it is in the status', async () => {
      const { violations } = await statusNow('ack');
      return violations.length > 0 ? violations : undefined;
    });
    expect(record).toMatchObject({ id: 0, occurrences: 3, podName: 'ack-node-1', executablePath: '/bin/0' });
    await client.request({
      method: 'PATCH',
      path: objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name: 'ack' }),
      patchType: 'application/merge-patch+json',
      body: { metadata: { annotations: { [`${ACKNOWLEDGE_ANNOTATION_PREFIX}0`]: 'known' } } },
    });
    await eventually('it is acknowledged', async () =>
      (await statusNow('ack')).acknowledgedViolations.length === 1 ? true : undefined,
    );
    const policy = await eventually('the annotation is gone', async () => {
      const object = await objectOf(client, WORKLOAD_POLICIES, NAMESPACE, 'ack');
      return Object.keys(object?.metadata.annotations ?? {}).length === 0 ? object : undefined;
    });
    expect(statusOf(policy)).toMatchObject({ violationCount: 3, activeViolationCount: 0, violations: [] });
    await eventually('the agent may forget it', () =>
      agent.violations.acknowledged === 2 ? true : undefined,
    );
    expect((await statusNow('web')).violationCount).toBe(0);
  });

  it('adds to a proposal what nodes observed of their own pods', async () => {
    const { client } = plane.admin;
    await propose(client, NAMESPACE, 'deploy-learned');
    await createPodOnNode(client, {
      namespace: NAMESPACE,
      name: 'learned-1',
      nodeName: 'node-0',
      labels: {},
    });
    const now = new Date().toISOString();
    for (const agent of agents.slice(0, 2)) {
      agent.observations.put('a', {
        namespace: NAMESPACE,
        proposal: 'deploy-learned',
        containerName: 'app',
        executablePath: '/bin/sh' as never,
        count: 4,
        firstSeen: now,
        lastSeen: now,
        origins: ['entrypoint'],
        pods: ['learned-1'],
        nodes: ['anything'],
      });
    }
    const [observation] = await eventually('there is an observation', async () => {
      const proposal = await objectOf(client, WORKLOAD_POLICY_PROPOSALS, NAMESPACE, 'deploy-learned');
      const { observations } = (proposal?.['status'] ?? {}) as { observations?: readonly unknown[] };
      return observations;
    });
    // The pod is not of the second node.
    expect(observation).toMatchObject({ count: 4, pods: ['learned-1'], nodes: ['node-0'] });
  });
});

it(
  `counts every violation once, killed ${KILLS} times at random under load (seed ${SEED})`,
  async () => {
    const random = numbers(SEED);
    const truth = new Map<string, number>();
    const load = { isOver: false };
    const loading = (async () => {
      while (!load.isOver) {
        const agent = agents[Math.floor(random() * NODES)];
        const policy = POLICIES[Math.floor(random() * POLICIES.length)] ?? '';
        const path = Math.floor(random() * PATHS);
        if (agent === undefined) continue;
        const key = `${policy} ${agent.nodeName} /bin/${path}`;
        const occurrences = (truth.get(key) ?? 0) + 1 + Math.floor(random() * 9);
        truth.set(key, occurrences);
        agent.violations.put(key, violationOf(agent, policy, path, occurrences));
        await sleep(5);
      }
    })();
    for (let kill = 0; kill < KILLS; kill++) {
      const controller = await startController();
      // At any moment of its life, beginning with its start.
      if (kill % 3 > 0) await controller.ready();
      await sleep(random() * 1_000);
      controller.assertRunning();
      await controller.stop('SIGKILL');
    }
    load.isOver = true;
    await loading;
    const last = await startController();
    await last.ready();
    const counted = new Map<string, number>();
    await eventually(
      'everything is acknowledged',
      () =>
        agents.every(({ violations }) => violations.acknowledged === violations.sequence) ? true : undefined,
      60_000,
    );
    for (const policy of POLICIES) {
      const { violations, violationCount } = await statusNow(policy);
      let sum = 0;
      for (const { nodeName, executablePath, occurrences } of violations) {
        counted.set(`${policy} ${nodeName} ${executablePath}`, occurrences);
        sum += occurrences;
      }
      expect(violationCount).toBe(sum);
    }
    expect(counted).toEqual(truth);
    await last.stop();
  },
  KILLS * KILL_BUDGET_MS + 120_000,
);
