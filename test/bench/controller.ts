import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { policyDigest } from '@runtime-enforcer/api/policy-digest';
import { CONTROLLER } from '../../controller/bundled-program.ts';
import { NODE_ENVIRONMENT } from '../../images/node-runtime.ts';
import { bundleProgram } from '../../images/program-bundle.ts';
import { statusOf } from '@runtime-enforcer/controller/status/known-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector } from '@runtime-enforcer/kube/reflector';
import { collectionPath, objectPath } from '@runtime-enforcer/kube/resource-path';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { freePorts } from '../cluster/port.ts';
import {
  CONTROLLER_NAMESPACE,
  controllerPlace,
  type ControllerPlace,
  type ControllerProcess,
} from '../controller/controller-process.ts';
import { markForPromotion, propose } from '../controller/proposals.ts';
import { agentAddress, createBoundPod, createPodOnNode } from '../controller/simulated-agents.ts';
import { printProgress } from '../vm/progress.ts';
import { eventually } from '../runtime/eventually.ts';
import { type AgentsOrder, boundPodOf } from './controller-agents.ts';
import type { Measured } from './figure.ts';

const NAMESPACE = 'shop';
const AGENTS = 1_000;
const HANGING = 20;
const PROCESSES = 4;
const POLICIES = 1_000;
const PROMOTIONS = 100;
const VIOLATIONS = 100;
const IDLE_SECONDS = 60;
const STORM_SECONDS = 60;
const STORM_PER_SECOND = 10_000;
const AT_ONCE = 32;
const BUDGET_MS = 180_000;
const HEALTHY = AGENTS - HANGING;

/** What the controller keeps of a policy's status in its own sight. */
interface Seen {
  readonly mode: unknown;
  readonly successfulNodes: number;
  readonly violationCount: number;
  readonly paths: ReadonlySet<string>;
}

/** The controller beside a real API server and a thousand agents, some of which hang. */
export async function benchController(report: (measured: Measured) => void): Promise<void> {
  const figure = (name: string, value: number, unit: string): void =>
    report({ figure: `controller.${name}`, value, unit, kernel: release() });
  const plane = await startControlPlane();
  const children: ChildProcess[] = [];
  const bundle = await mkdtemp(join(tmpdir(), 'runtime-enforcer-controller-bundle-'));
  let place: ControllerPlace | undefined;
  const policies = objectStore<Seen>({
    transform: (object) => {
      const { successfulNodes, violationCount, violations } = statusOf(object);
      const paths = new Set(violations.map(({ executablePath }) => executablePath));
      return { mode: (object['spec'] as { mode: unknown }).mode, successfulNodes, violationCount, paths };
    },
  });
  const watch = reflector({
    client: plane.admin.client,
    resource: WORKLOAD_POLICIES,
    store: policies,
    onChange: () => undefined,
  });
  try {
    const [port = 0] = await freePorts(1);
    place = await controllerPlace(plane);
    await bundleProgram(CONTROLLER, bundle);
    const environment = Object.entries(NODE_ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
    const command = ['env', ...environment, process.execPath, join(bundle, `${CONTROLLER.name}.mjs`)];
    await prepare(plane, port, children);
    watch.start();
    const start = async (intervalText: string): Promise<ControllerProcess> => {
      const started = await place?.start({
        command,
        args: [
          `--wp-status-reconciler-agent-grpc-port=${port}`,
          `--wp-status-reconciler-update-interval=${intervalText}`,
          '--log-level=error',
        ],
      });
      if (started === undefined) throw new Error('there is no place for a controller');
      await started.ready();
      return started;
    };
    const settled = (nodes = HEALTHY): boolean =>
      policies.size >= POLICIES &&
      [...policies.values()].every(({ successfulNodes }) => successfulNodes === nodes);

    printProgress('the controller reads all agents for the first time');
    const controller = await start('1s');
    const readStart = performance.now();
    await eventually('all statuses are written', () => (settled() ? true : undefined), BUDGET_MS);
    figure('first_settle_s', seconds(readStart), 's');

    printProgress('the mode of all policies changes');
    await eachAtOnce(POLICIES, async (index) => await setMode(plane.admin.client, index));
    await eventually('no node has the new mode', () => (settled(0) ? true : undefined), BUDGET_MS);
    const settleStart = performance.now();
    await orderAll(children, { kind: 'mode', mode: 'protect' });
    await eventually('the new mode is in every status', () => (settled() ? true : undefined), BUDGET_MS);
    figure('status_settle_s', seconds(settleStart), 's');
    figure('rss_mib', await peakMib(controller.pid), 'MiB');

    printProgress('violations one by one');
    figure('violation_to_status_p99_ms', await violationDelay(children, policies), 'ms');
    printProgress('promotions one by one');
    figure('promote_p99_ms', await promotionDelay(plane.admin.client, policies), 'ms');

    printProgress('nothing happens');
    await eventually('all is quiet', () => (settled() ? true : undefined), BUDGET_MS);
    await sleep(3_000);
    const before = await writes(plane);
    await sleep(IDLE_SECONDS * 1_000);
    figure('idle_writes_per_minute', ((await writes(plane)) - before) * (60 / IDLE_SECONDS), '1/min');
    await controller.stop();

    printProgress('a storm of violations, at the default interval');
    const second = await start('30s');
    await eventually('it has read all', () => (settled() ? true : undefined), BUDGET_MS);
    const beforeStorm = await writes(plane);
    const stormStart = performance.now();
    await orderAll(children, {
      kind: 'storm',
      perSecond: STORM_PER_SECOND / PROCESSES,
      seconds: STORM_SECONDS,
    });
    const perMinute = ((await writes(plane)) - beforeStorm) * (60 / seconds(stormStart));
    figure('storm_writes_per_minute', Math.round(perMinute), '1/min');
    figure('storm_rss_mib', await peakMib(second.pid), 'MiB');
  } finally {
    await watch.stop();
    for (const child of children) child.kill('SIGKILL');
    await place?.stop();
    await plane.stop();
    await rm(bundle, { recursive: true, force: true });
  }
}

async function prepare(plane: ControlPlane, port: number, children: ChildProcess[]): Promise<void> {
  const { client } = plane.admin;
  printProgress(`${POLICIES} policies, ${AGENTS} agents`);
  await installCustomResources(client);
  await plane.serviceAccount(NAMESPACE, 'default');
  await plane.serviceAccount(CONTROLLER_NAMESPACE, 'default');
  const rulesByContainer = { app: { executables: { allowed: ['/app'] } } };
  await eachAtOnce(POLICIES, async (index) => {
    await client.request({
      method: 'POST',
      path: collectionPath(WORKLOAD_POLICIES, NAMESPACE),
      body: {
        apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
        kind: 'WorkloadPolicy',
        metadata: { name: policyName(index) },
        spec: { mode: 'monitor', rulesByContainer },
      },
    });
  });
  await eachAtOnce(AGENTS, async (index) => {
    await createPodOnNode(client, {
      namespace: CONTROLLER_NAMESPACE,
      name: `agent-${index}`,
      nodeName: `node-${index}`,
      address: agentAddress(index),
      labels: { 'app.kubernetes.io/component': 'agent' },
    });
    const { policy, name } = boundPodOf(index);
    await createBoundPod(client, {
      namespace: NAMESPACE,
      name,
      nodeName: `node-${index}`,
      policy: policyName(policy),
    });
  });
  const digest = policyDigest({
    unlistedContainers: 'allow',
    rulesByContainer: new Map([
      ['app', { executables: { allowed: ['/app' as never], otherMountNamespaces: 'deny' } }],
    ]),
  });
  const bounds = Array.from({ length: PROCESSES + 1 }, (_, index) =>
    Math.round((HEALTHY / PROCESSES) * index),
  );
  const ranges = [
    ...bounds.slice(1).map((to, index) => [bounds[index] ?? 0, to] as const),
    [HEALTHY, AGENTS],
  ];
  for (const [from = 0, to = 0] of ranges) {
    const child = fork(join(import.meta.dirname, 'controller-agents.ts'), { stdio: 'inherit' });
    const { authority } = plane.credentials;
    const policies = Array.from({ length: POLICIES }, (_, index) => `${NAMESPACE}/${policyName(index)}`);
    await order(child, { kind: 'start', authority, from, to, port, policies, digest });
    // These accept connections, and never answer.
    if (from === HEALTHY) child.kill('SIGSTOP');
    children.push(child);
  }
}

function policyName(index: number): string {
  return `policy-${index}`;
}

async function setMode(client: ApiClient, index: number): Promise<void> {
  await client.request({
    method: 'PATCH',
    path: objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name: policyName(index) }),
    patchType: 'application/merge-patch+json',
    body: { spec: { mode: 'protect' } },
  });
}

async function violationDelay(
  children: readonly ChildProcess[],
  policies: { get(key: string): Seen | undefined },
): Promise<number> {
  const [child] = children;
  if (child === undefined) throw new Error('there are no agents');
  const delays: number[] = [];
  for (let index = 0; index < VIOLATIONS; index++) {
    const path = `/measured/${index}`;
    // Not in step with the interval.
    await sleep(Math.random() * 1_000);
    const start = performance.now();
    await order(child, { kind: 'violate', index, path });
    const key = `${NAMESPACE}/${policyName(boundPodOf(index).policy)}`;
    await polled(() => policies.get(key)?.paths.has(path) === true);
    delays.push(performance.now() - start);
  }
  return p99(delays);
}

async function promotionDelay(
  client: ApiClient,
  policies: { get(key: string): Seen | undefined },
): Promise<number> {
  const delays: number[] = [];
  for (let index = 0; index < PROMOTIONS; index++) {
    const name = `deploy-${index}`;
    await propose(client, NAMESPACE, name);
    await sleep(50);
    const start = performance.now();
    await markForPromotion(client, NAMESPACE, name, 'monitor');
    await polled(() => policies.get(`${NAMESPACE}/${name}`) !== undefined);
    delays.push(performance.now() - start);
    await client.request({
      method: 'DELETE',
      path: objectPath({ resource: WORKLOAD_POLICIES, namespace: NAMESPACE, name }),
    });
  }
  const { items } = (await client.request({
    path: collectionPath(WORKLOAD_POLICY_PROPOSALS, NAMESPACE),
  })) as { readonly items: readonly unknown[] };
  if (items.length > 1) throw new Error(`${items.length} proposals were promoted and not removed`);
  return p99(delays);
}

/** Requests that change something, other than leases, that the API server has answered so far. */
async function writes(plane: ControlPlane): Promise<number> {
  const text = await metricsText(plane);
  let sum = 0;
  for (const line of text.split('\n')) {
    const match = /^apiserver_request_total\{(?<labels>.*)\} (?<value>\S+)$/.exec(line)?.groups;
    if (match === undefined) continue;
    const { labels = '', value = '' } = match;
    const isWrite = /verb="(POST|PUT|PATCH|APPLY|DELETE)"/.test(labels);
    const isOurs = /group="runtimeenforcer|resource="events"/.test(labels);
    if (isWrite && isOurs) sum += Number(value);
  }
  return sum;
}

async function metricsText(plane: ControlPlane): Promise<string> {
  const chunks = await (await plane.admin.client.stream({ path: '/metrics' })).toArray();
  return Buffer.concat(chunks as Buffer[]).toString();
}

async function orderAll(children: readonly ChildProcess[], what: AgentsOrder): Promise<void> {
  await Promise.all(children.slice(0, PROCESSES).map(async (child) => await order(child, what)));
}

async function order(child: ChildProcess, what: AgentsOrder): Promise<void> {
  const answered = once(child, 'message');
  child.send(what);
  const [answer] = (await answered) as [unknown];
  if (answer !== 'done') throw new Error(`agents, ${what.kind}: ${String(answer)}`);
}

async function eachAtOnce(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function polled(holds: () => boolean): Promise<void> {
  const end = performance.now() + BUDGET_MS;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`did not happen within ${BUDGET_MS} ms`);
    await sleep(2);
  }
}

async function peakMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024);
}

function seconds(sinceMs: number): number {
  return Math.round((performance.now() - sinceMs) / 10) / 100;
}

function p99(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return Math.round(sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN);
}
