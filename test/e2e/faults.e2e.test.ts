import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { noteState } from './diagnosis.ts';
import { forbiddenLoopPod, type ForbiddenLoop, loopCounts, startForbiddenLoop } from './forbidden-loop.ts';
import { CONTROLLERS, helm, install, NAMESPACE, RELEASE } from './installation.ts';
import { note } from './notes.ts';
import { type Person, person } from './person.ts';
import { policyObject } from './policy-object.ts';
import { agentCertificate, agentPids, agentsAreReady, podsOf } from './product-pods.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';
import { CAT, LOOP_PATHS, LS } from './workload.ts';

const TENANTS = 'shop';
const POLICY = 'loop';
const DENIED = /operation not permitted/i;
const API_DOWN_MS = 60_000;
const CONTROLLER_DOWN_MS = 15_000;
const DISK_FULL_MS = 15_000;
const COMES_BACK_MS = 240_000;
/** New pods wait until an agent is there, and the tables of the kernel have another size after an upgrade. */
const REQUIRED = { admission: { requireNriPlugin: true } };
const OTHER_TABLES = { ...REQUIRED, agent: { logLevel: 'debug', args: ['--capacity=32768'] } };

let cluster: WholeCluster;
let tenant: Person;
let operator: Person;
let loop: ForbiddenLoop;
let before: number;
let began: number;

beforeAll(async () => {
  cluster = await startWholeCluster(TENANTS, { hasValidator: true });
  tenant = person(cluster, TENANTS);
  operator = person(cluster, NAMESPACE);
  await tenant.kubectl(`create namespace ${TENANTS}`);
  await install(cluster, REQUIRED);
  await tenant.kubectl('apply -f -', JSON.stringify(policyObject(POLICY, { main: LOOP_PATHS })));
  loop = await startForbiddenLoop(tenant, 'loop', POLICY);
  const required = await tenant.kubectl('get pod loop -o jsonpath={.metadata.annotations}');
  expect(required).toContain('required-plugins.noderesource.dev');
  await note('| fault | seconds | attempts | passed | attempts of a pod started meanwhile | passed |');
});
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await noteState(cluster, task.name);
});
afterAll(async () => {
  await cluster.stop();
});
beforeEach(async () => {
  before = (await loop.counts()).attempts;
  began = performance.now();
});

async function startMeanwhile(name: string): Promise<void> {
  await tenant.kubectl('apply -f -', forbiddenLoopPod(name, POLICY));
}

/**
 * After a fault: both loops were tried, and never passed; what is listed runs.
 *
 * @param meanwhile a pod of {@link startMeanwhile}, which has to start without help
 */
async function nothingPassed(fault: string, meanwhile: string): Promise<void> {
  await agentsAreReady(operator);
  await tenant.kubectl(`wait --for=condition=Ready pod/${meanwhile} --timeout=180s`);
  const { attempts, passed } = await loop.counts();
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  const other = await loopCounts(tenant, meanwhile);
  const tried = attempts - before;
  await note(`| ${fault} | ${seconds} | ${tried} | ${passed} | ${other.attempts} | ${other.passed} |`);
  expect(tried).toBeGreaterThan(0);
  expect(other.attempts).toBeGreaterThan(0);
  expect([passed, other.passed]).toEqual([0, 0]);
  for (const pod of ['loop', meanwhile]) {
    expect((await tenant.exec(`pod/${pod}`, LS, '/')).code).toBe(0);
    expect((await tenant.exec(`pod/${pod}`, CAT, '/etc/passwd')).text).toMatch(DENIED);
  }
  await tenant.kubectl(`delete pod ${meanwhile} --wait=false`);
}

async function loopAnswers(): Promise<void> {
  await eventually(
    'a listed program runs in the pod again',
    async () => ((await tenant.exec('pod/loop', LS, '/')).code === 0 ? true : undefined),
    COMES_BACK_MS,
  );
}

/** Ends the agent by a command that gets its process id, and waits for the next one. */
async function loseAgent(meanwhile: string, script: string): Promise<void> {
  const [pid = expect.fail('no agent runs on the node')] = await agentPids(cluster);
  await cluster.node.read('sh', '-c', script, 'sh', pid);
  await startMeanwhile(meanwhile);
  await eventually(
    'another agent runs',
    async () => {
      const pids = await agentPids(cluster);
      return pids.length > 0 && !pids.includes(pid) ? true : undefined;
    },
    COMES_BACK_MS,
  );
}

async function violationCount(): Promise<number> {
  const policy = await tenant.get('workloadpolicy', POLICY);
  return (policy?.['status'] as { readonly violationCount?: number } | undefined)?.violationCount ?? 0;
}

it('denies on when the agent is killed', async () => {
  await loseAgent('after-kill', 'kill -9 "$1"');
  await nothingPassed('agent killed (SIGKILL)', 'after-kill');
});

it('denies on when the agent has no memory left', async () => {
  const starve = 'group=$(sed s/^0::// "/proc/$1/cgroup"); echo 4M > "/sys/fs/cgroup$group/memory.max"';
  await loseAgent('after-oom', starve);
  await nothingPassed('agent out of memory', 'after-oom');
});

it('denies on while the agents are rolled out anew', async () => {
  await operator.kubectl('rollout restart daemonset/runtime-enforcer-agent');
  await startMeanwhile('during-rollout');
  await nothingPassed('rollout of the agents', 'during-rollout');
});

it('denies on while helm upgrades to tables of another size', async () => {
  const upgraded = install(cluster, OTHER_TABLES);
  await startMeanwhile('during-upgrade');
  await upgraded;
  await nothingPassed('helm upgrade, other tables', 'during-upgrade');
});

it('denies on while helm rolls back', async () => {
  const rolledBack = helm(cluster, 'rollback', RELEASE, '--wait', '--timeout', '5m');
  await startMeanwhile('during-rollback');
  await rolledBack;
  await nothingPassed('helm rollback', 'during-rollback');
});

it('denies on when the container runtime is killed and comes back', async () => {
  await cluster.node.read('pkill', '-9', '-x', 'containerd');
  await startMeanwhile('after-runtime');
  await cluster.node.read('sh', '-c', 'until ctr version > /dev/null 2>&1; do sleep 0.5; done');
  await loopAnswers();
  await nothingPassed('containerd killed', 'after-runtime');
});

it('denies on when kubelet is killed and comes back', async () => {
  await cluster.node.read('pkill', '-9', '-x', 'kubelet');
  await startMeanwhile('after-kubelet');
  await loopAnswers();
  await nothingPassed('kubelet killed', 'after-kubelet');
});

it('denies on while the API server is away for a minute', async () => {
  await cluster.plane.restartApiServer(API_DOWN_MS);
  await startMeanwhile('after-api');
  await nothingPassed('API server away for a minute', 'after-api');
});

it('denies on while there is no controller', async () => {
  await operator.kubectl(`scale deployment/${CONTROLLERS} --replicas=0`);
  await eventually('the controller is gone', async () =>
    (await podsOf(operator, 'controller')).length === 0 ? true : undefined,
  );
  await startMeanwhile('without-controller');
  await delay(CONTROLLER_DOWN_MS);
  await nothingPassed('no controller', 'without-controller');
  await operator.kubectl(`scale deployment/${CONTROLLERS} --replicas=1`);
  await operator.kubectl(`rollout status deployment/${CONTROLLERS} --timeout=120s`);
});

it('denies on while authority and certificates are replaced, and the controller goes on counting', async () => {
  const shown = await agentCertificate(operator);
  const fields = ['tls.crt', 'tls.key'].map((key) => ({ op: 'replace', path: `/data/${key}`, value: '' }));
  await operator.kubectl(`patch secret ${RELEASE}-ca --type=json -p ${JSON.stringify(fields)}`);
  await startMeanwhile('new-certificates');
  await eventually(
    'the agent shows another certificate',
    async () => ((await agentCertificate(operator)) === shown ? undefined : true),
    COMES_BACK_MS,
  );
  const counted = await violationCount();
  await eventually(
    'the controller counts on',
    async () => ((await violationCount()) > counted ? true : undefined),
    COMES_BACK_MS,
  );
  await nothingPassed('authority and certificates replaced', 'new-certificates');
});

it("denies on while the node's disk is full, also without an agent", async () => {
  await cluster.node.read(
    ...['sh', '-c'],
    `fallocate -l "$(($(stat -f -c '%a * %S' /)))" /var/filler
    dd if=/dev/zero of=/var/filler-rest bs=1M 2> /dev/null
    [ "$(stat -f -c %a /)" -lt 256 ]`,
  );
  await startMeanwhile('disk-full');
  await delay(DISK_FULL_MS);
  expect((await tenant.exec('pod/loop', LS, '/')).code).toBe(0);
  const [pid = expect.fail('no agent runs on the node')] = await agentPids(cluster);
  await cluster.node.read('kill', '-9', pid);
  await delay(DISK_FULL_MS);
  await cluster.node.read('rm', '/var/filler', '/var/filler-rest');
  await nothingPassed('disk full, agent killed meanwhile', 'disk-full');
});

it('denies from the first moment on after the node was reset', async () => {
  await cluster.node.reboot();
  await startMeanwhile('after-reboot');
  await loopAnswers();
  // What the pod had counted went with the node's memory.
  before = 0;
  await nothingPassed('node reset', 'after-reboot');
});

it('lets the loop pass once it is uninstalled, so that it was worth something', async () => {
  await helm(cluster, 'uninstall', RELEASE, '--wait', '--timeout', '3m');
  await eventually(
    'the loop passes',
    async () => ((await loop.counts()).passed > 0 ? true : undefined),
    60_000,
  );
  const { attempts, passed } = await loop.counts();
  await note(`| uninstalled | | ${attempts - before} | ${passed} | | |`);
});
