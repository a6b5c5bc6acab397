import { setTimeout as delay } from 'node:timers/promises';
import { API_VERSION, WORKLOAD_POLICY_KIND } from '@runtime-enforcer/api/keys';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { noteState } from './diagnosis.ts';
import { type ForbiddenLoop, startForbiddenLoop } from './forbidden-loop.ts';
import { AGENTS, CONTROLLERS, helm, install, NAMESPACE, RELEASE } from './installation.ts';
import { note } from './notes.ts';
import { type Person, person } from './person.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';
import { boundPod, CAT, LOOP_PATHS, LS, SLEEP } from './workload.ts';

const TENANTS = 'shop';
const POLICY = 'loop';
const DENIED = /operation not permitted/i;
const API_DOWN_MS = 60_000;
const COMES_BACK_MS = 120_000;
const TEST_BUDGET_MS = 600_000;

let cluster: WholeCluster;
let tenant: Person;
let operator: Person;
let loop: ForbiddenLoop;
let before: number;

beforeAll(async () => {
  cluster = await startWholeCluster(TENANTS);
  tenant = person(cluster, TENANTS);
  operator = person(cluster, NAMESPACE);
  await tenant.kubectl(`create namespace ${TENANTS}`);
  await install(cluster);
  const rules = { main: { executables: { allowed: LOOP_PATHS } } };
  const policy = {
    ...{ apiVersion: API_VERSION, kind: WORKLOAD_POLICY_KIND, metadata: { name: POLICY } },
    spec: { mode: 'protect', rulesByContainer: rules },
  };
  await tenant.kubectl('apply -f -', JSON.stringify(policy));
  loop = await startForbiddenLoop(tenant, 'loop', POLICY);
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await noteState(cluster, task.name);
});
afterAll(async () => {
  await cluster.stop();
});
beforeEach(async () => {
  before = (await loop.counts()).attempts;
});

/** The agents' processes on the node, in order. */
async function agentPids(): Promise<readonly string[]> {
  const { stdout } = await cluster.node.run('pgrep', '-f', '/opt/runtime-enforcer/agent.mjs');
  return stdout.split('\n').filter((line) => line !== '');
}

interface PodObject {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** The product's pods of a component that are not going away. */
async function podsOf(component: string): Promise<readonly PodObject[]> {
  const text = await operator.kubectl(`get pods -l app.kubernetes.io/component=${component} -o json`);
  const { items } = JSON.parse(text) as { readonly items: readonly PodObject[] };
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

async function agentsAreReady(): Promise<void> {
  await operator.kubectl(`rollout status daemonset/${AGENTS} --timeout=180s`);
  await eventually(
    'the agent is ready',
    async () => {
      const pods = await podsOf('agent');
      const ready = pods.filter(({ status }) =>
        status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
      );
      return pods.length === 1 && ready.length === 1 ? true : undefined;
    },
    COMES_BACK_MS,
  );
}

/** After a fault: the loop was tried on, and never passed; what is listed runs. */
async function nothingPassed(fault: string): Promise<void> {
  const { attempts, passed } = await loop.counts();
  await note(`${fault}: ${attempts - before} attempts, ${passed} passed`);
  expect(attempts).toBeGreaterThan(before);
  expect(passed).toBe(0);
  expect((await tenant.exec('pod/loop', LS, '/')).code).toBe(0);
  expect((await tenant.exec('pod/loop', CAT, '/etc/passwd')).text).toMatch(DENIED);
}

/** A pod that was started meanwhile is bound once there is an agent. */
async function isBound(name: string): Promise<void> {
  await tenant.kubectl(`wait --for=condition=Ready pod/${name} --timeout=180s`);
  await eventually(
    `pod ${name} is bound`,
    async () => (DENIED.test((await tenant.exec(`pod/${name}`, CAT, '/etc/passwd')).text) ? true : undefined),
    COMES_BACK_MS,
  );
  await tenant.kubectl(`delete pod ${name} --wait=false`);
}

async function startMeanwhile(name: string): Promise<void> {
  await tenant.kubectl('apply -f -', boundPod(name, POLICY, `exec ${SLEEP} 3600`));
}

/** Ends the agent by a command that gets its process id, and waits for the next one. */
async function loseAgent(name: string, script: string): Promise<void> {
  const [pid = expect.fail('no agent runs on the node')] = await agentPids();
  await cluster.node.read('sh', '-c', script, 'sh', pid);
  await startMeanwhile(name);
  await eventually(
    'another agent runs',
    async () => {
      const pids = await agentPids();
      return pids.length > 0 && !pids.includes(pid) ? true : undefined;
    },
    COMES_BACK_MS,
  );
  await agentsAreReady();
}

it(
  'denies on when the agent is killed',
  async () => {
    await loseAgent('after-kill', 'kill -9 "$1"');
    await nothingPassed('agent killed');
    await isBound('after-kill');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on when the agent has no memory left',
  async () => {
    const starve = 'group=$(sed s/^0::// "/proc/$1/cgroup"); echo 4M > "/sys/fs/cgroup$group/memory.max"';
    await loseAgent('after-oom', starve);
    await nothingPassed('agent out of memory');
    await isBound('after-oom');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on while the agents are rolled out anew',
  async () => {
    await operator.kubectl(`rollout restart daemonset/${AGENTS}`);
    await startMeanwhile('during-rollout');
    await agentsAreReady();
    await nothingPassed('rollout');
    await isBound('during-rollout');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on while helm upgrades and rolls back',
  async () => {
    await install(cluster, { agent: { logLevel: 'debug' } });
    await startMeanwhile('during-upgrade');
    await helm(cluster, 'rollback', RELEASE, '--wait', '--timeout', '5m');
    await agentsAreReady();
    await nothingPassed('upgrade and rollback');
    await isBound('during-upgrade');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on when the container runtime is killed and comes back',
  async () => {
    await cluster.node.read(
      ...['sh', '-c'],
      `kill -9 "$(cat /run/containerd.pid)"; sleep 1
      setsid /usr/bin/containerd --config /run/guest/containerd.toml >> /var/log/containerd.log 2>&1 &
      echo $! > /run/containerd.pid
      until ctr version > /dev/null 2>&1; do sleep 0.5; done`,
    );
    await startMeanwhile('after-runtime');
    await agentsAreReady();
    await nothingPassed('containerd killed');
    await isBound('after-runtime');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on when kubelet is killed and comes back',
  async () => {
    await cluster.node.read('pkill', '-9', 'kubelet');
    await startMeanwhile('after-kubelet');
    await eventually(
      'kubelet answers',
      async () => ((await tenant.exec('pod/loop', LS, '/')).code === 0 ? true : undefined),
      COMES_BACK_MS,
    );
    await agentsAreReady();
    await nothingPassed('kubelet killed');
    await isBound('after-kubelet');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on while the API server is away for a minute',
  async () => {
    await cluster.plane.restartApiServer(API_DOWN_MS);
    await startMeanwhile('after-api');
    await agentsAreReady();
    await nothingPassed('API server away');
    await isBound('after-api');
  },
  TEST_BUDGET_MS,
);

it(
  'denies on while there is no controller',
  async () => {
    await operator.kubectl(`scale deployment/${CONTROLLERS} --replicas=0`);
    await eventually('the controller is gone', async () =>
      (await podsOf('controller')).length === 0 ? true : undefined,
    );
    expect((await tenant.exec('pod/loop', CAT, '/etc/passwd')).text).toMatch(DENIED);
    await delay(5_000);
    await operator.kubectl(`scale deployment/${CONTROLLERS} --replicas=1`);
    await operator.kubectl(`rollout status deployment/${CONTROLLERS} --timeout=120s`);
    await startMeanwhile('after-controller');
    await nothingPassed('no controller');
    await isBound('after-controller');
  },
  TEST_BUDGET_MS,
);

it('lets the loop pass once it is uninstalled, so that it was worth something', async () => {
  await helm(cluster, 'uninstall', RELEASE, '--wait', '--timeout', '3m');
  await eventually(
    'the loop passes',
    async () => ((await loop.counts()).passed > 0 ? true : undefined),
    60_000,
  );
  const { attempts, passed } = await loop.counts();
  await note(`uninstalled: ${attempts - before} attempts, ${passed} passed`);
});
