import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CONTAINER_LAYOUT } from '@runtime-enforcer/agent/kernel/gen/abi';
import type { ExampleContainer } from '@runtime-enforcer/agent/containers/container-example';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectPath, PODS } from '@runtime-enforcer/kube/resource-path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { freePorts } from '../cluster/port.ts';
import {
  createAgentPod,
  createPodOnNode,
  type SimulatedAgent,
  simulatedAgent,
} from '../controller/simulated-agents.ts';
import { type DebuggerRun, debuggerRunner, type DebuggerRunner } from './debugger-process.ts';
import { type KernelNode, kernelNode, POLICY_NAME } from './kernel-node.ts';

// The debugger looks twice, seconds apart, before it tells of a difference.
vi.setConfig({ testTimeout: 90_000, hookTimeout: 120_000 });

const NAMESPACE = 'shop';
const POD = 'web-1';
const AGENT_NAMESPACE = 'runtime-enforcer';

let plane: ControlPlane;
let directory = '';
let node: KernelNode;
let agents: readonly SimulatedAgent[] = [];
let runner: DebuggerRunner;
let example: ExampleContainer;
let uid = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-debugger-'));
  plane = await startControlPlane();
  const { client } = plane.admin;
  for (const namespace of [NAMESPACE, AGENT_NAMESPACE]) await plane.serviceAccount(namespace, 'default');
  const [port = 0] = await freePorts(1);
  runner = await debuggerRunner(plane, directory, port);
  node = await kernelNode();
  const { authority } = plane.credentials;
  agents = [
    await simulatedAgent({ authority, port, index: 1, sources: node.sources }),
    await simulatedAgent({ authority, port, index: 2 }),
  ];
  for (const agent of agents) {
    await agent.start();
    await createAgentPod(client, agent);
  }
  example = await node.startContainer();
  uid = await podOf(POD, example);
  await node.bind(example, { name: POD, uid });
});
afterAll(async () => {
  for (const agent of agents) await agent.stop();
  await node.stop();
  await plane.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Has the API server know a pod whose one container runs, as kubelet would. @returns its uid */
async function podOf(name: string, { container }: ExampleContainer): Promise<string> {
  const { client } = plane.admin;
  const labels = { [POLICY_LABEL]: POLICY_NAME };
  await createPodOnNode(client, { namespace: NAMESPACE, name, nodeName: 'node-1', labels });
  await patchPod(name, { status: { containerStatuses: [statusOf(container.id)] } }, 'status');
  return (await pod(name)).metadata.uid ?? '';
}

function statusOf(containerId: string) {
  return {
    ...{ name: 'app', image: 'app', imageID: '', ready: true, restartCount: 0, started: true },
    containerID: `containerd://${containerId}`,
    state: { running: { startedAt: '2026-01-31T12:00:00Z' } },
  };
}

async function pod(name: string): Promise<KubeObject> {
  const object = await plane.admin.client.request({
    path: objectPath({ resource: PODS, namespace: NAMESPACE, name }),
  });
  if (!isKubeObject(object)) throw new Error(`the API server has no pod ${name}`);
  return object;
}

async function patchPod(name: string, body: object, subresource?: 'status'): Promise<void> {
  await plane.admin.client.request({
    method: 'PATCH',
    path: objectPath({ resource: PODS, namespace: NAMESPACE, name, ...(subresource && { subresource }) }),
    patchType: 'application/merge-patch+json',
    body,
  });
}

async function deletePod(name: string): Promise<void> {
  await plane.admin.client.request({
    method: 'DELETE',
    path: objectPath({ resource: PODS, namespace: NAMESPACE, name }),
    query: { gracePeriodSeconds: 0 },
  });
}

const setContainer = async (id: string): Promise<void> =>
  await patchPod(POD, { status: { containerStatuses: [statusOf(id)] } }, 'status');
const relabel = async (labels: object): Promise<void> => await patchPod(POD, { metadata: { labels } });

function key(bytes: 4 | 8, value: number | bigint): Buffer {
  const buffer = Buffer.alloc(bytes);
  if (bytes === 4) buffer.writeUInt32LE(Number(value));
  else buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

const once = async (...args: readonly string[]): Promise<DebuggerRun> =>
  await runner.run(['--once', ...args]);
/** The lines of differences that a run has found. */
const linesOf = ({ stdout }: DebuggerRun): string[] =>
  stdout.split('\n').filter((line) => line.startsWith('- '));
const subject = (): string => `pod ${NAMESPACE}/${POD} (${uid}): container app (${example.container.id})`;

describe('debugger --once', () => {
  it('ends well where every cache is aligned, and says so of each node', async () => {
    const run = await once();
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout.split('\n').slice(1)).toEqual([
      '=== Nodes in the cluster: 2, agent caches: 2.',
      '=== Node "node-1": caches are aligned',
      '=== Node "node-2": caches are aligned',
      '',
    ]);
  });

  it('tells the same as JSON', async () => {
    const { code, stdout } = await once('-o', 'json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ nodes: 2, agentCaches: 2, aligned: true },
      reports: [
        { node: 'node-1', state: 'aligned' },
        { node: 'node-2', state: 'aligned' },
      ],
    });
  });
});

describe('what the kernel of a node holds', () => {
  const { offsets } = CONTAINER_LAYOUT;

  /** Changes a map behind the agent's back, compares, and puts it back. */
  async function withEntry(
    map: 'cgroups' | 'mountNamespaces' | 'containers' | 'policies',
    at: Buffer,
    change: (value: Buffer) => Buffer | undefined,
  ): Promise<DebuggerRun> {
    const kept = node.maps[map].lookup(at);
    const changed = change(Buffer.from(kept ?? []));
    if (changed === undefined) node.maps[map].delete(at);
    else node.maps[map].update(at, changed);
    try {
      return await once();
    } finally {
      if (kept === undefined) node.maps[map].delete(at);
      else node.maps[map].update(at, kept);
    }
  }
  const cgroup = (): Buffer => key(8, node.container(example).cgroupId);
  const slot = (): Buffer => key(4, node.container(example).slot);

  it('is compared with what the agent has bound: a container that is not there', async () => {
    const run = await withEntry('cgroups', cgroup(), () => undefined);
    expect(run.code).toBe(3);
    expect(linesOf(run)).toEqual([
      `- ${subject()}: the kernel does not hold it, so what it starts is neither checked nor learned`,
    ]);
    expect(run.stdout).toContain('=== Node "node-1": found differences\n');
    expect(run.stdout).toContain('==== Agent cache dump (1 pods)\n');
    expect(run.stdout).toContain('=== Node "node-2": caches are aligned\n');
  });

  it('is compared: another policy', async () => {
    const run = await withEntry('containers', slot(), (value) => {
      value.writeUInt32LE(77, offsets.policy);
      return value;
    });
    const { policyId } = node.container(example);
    expect(linesOf(run)).toEqual([`- ${subject()}: "policy id" mismatch: agent="${policyId}", kernel="77"`]);
  });

  it('is compared: a container that is learned instead of checked', async () => {
    const run = await withEntry('containers', slot(), (value) => {
      value.writeUInt32LE(1, offsets.flags);
      return value;
    });
    expect(linesOf(run)).toEqual([`- ${subject()}: "learning" mismatch: agent="false", kernel="true"`]);
  });

  it('is compared: another mount namespace', async () => {
    const run = await withEntry('containers', slot(), (value) => {
      value.writeUInt32LE(5, offsets.mount_namespace);
      return value;
    });
    expect(linesOf(run)).toEqual([
      `- ${subject()}: "mount namespace" mismatch: agent="${example.mountNamespace}", kernel="5"`,
    ]);
  });

  it('is compared: a mount namespace that leads to another container', async () => {
    const run = await withEntry('mountNamespaces', key(4, example.mountNamespace), () => key(4, 5));
    expect(linesOf(run)).toEqual([
      `- ${subject()}: the kernel does not find it by its mount namespace, so a process of it that leaves its cgroup is not checked`,
    ]);
  });

  it('is compared: no list for the policy', async () => {
    const run = await withEntry('policies', key(4, node.container(example).policyId), () => Buffer.alloc(8));
    expect(linesOf(run)).toEqual([`- ${subject()}: the kernel has no list for it, so it may start nothing`]);
  });

  it('is compared: a place of a cgroup that nothing runs in', async () => {
    const run = await withEntry('cgroups', key(8, 4_000_000_000n), () => key(4, 9));
    expect(linesOf(run)).toEqual([
      '- the kernel holds place 9 for cgroup 4000000000, which belongs to no container that the agent knows',
    ]);
  });

  it('is compared: a cgroup that is gone while the API server has the container run', async () => {
    const second = await node.startContainer();
    await node.bind(second, { name: 'web-2', uid: await podOf('web-2', second) });
    expect((await once()).code).toBe(0);
    const { cgroupId } = node.container(second);
    await node.end(second);
    const [line] = linesOf(await once());
    expect(line).toContain(`"cgroup id" mismatch: agent="${cgroupId}", node="none"`);
    await node.unbind(second);
    await deletePod('web-2');
    expect((await once()).code).toBe(0);
  });
});

describe("an agent's cache", () => {
  afterEach(async () => {
    node.edit = (containers) => containers;
    await relabel({ [POLICY_LABEL]: POLICY_NAME, role: null });
    await setContainer(example.container.id);
    expect((await once()).stdout).toContain('=== Node "node-1": caches are aligned\n');
  });

  it('is compared with the cluster: a pod that it does not know', async () => {
    node.edit = () => [];
    expect(linesOf(await once())[0]).toBe(
      `- pod ${NAMESPACE}/${POD} (${uid}) is missing from the agent cache`,
    );
  });

  it('is compared: a pod that the cluster does not know', async () => {
    const other = await node.startContainer();
    await node.bind(other, { name: 'web-3', uid: await podOf('web-3', other) });
    await deletePod('web-3');
    const run = await once().finally(async () => await node.unbind(other));
    expect(linesOf(run)).toEqual([
      expect.stringMatching(/^- unexpected pod shop\/web-3 \(.*\) found in the agent cache$/),
    ]);
  });

  it('is compared: a container that was started again', async () => {
    await setContainer('newer');
    expect(linesOf(await once())).toEqual([
      `- pod ${NAMESPACE}/${POD} (${uid}): missing container app (newer) in the agent cache`,
      `- pod ${NAMESPACE}/${POD} (${uid}): container app (${example.container.id}) is only in the agent cache`,
    ]);
  });

  it('is compared: the label that binds, and so the policy', async () => {
    await relabel({ [POLICY_LABEL]: 'other' });
    expect(linesOf(await once())).toEqual([
      `- pod ${NAMESPACE}/${POD} (${uid}): "label ${POLICY_LABEL}" mismatch: cluster="other", agent="web"`,
      `- ${subject()}: "policy" mismatch: cluster="shop/other", agent="shop/web"`,
    ]);
  });

  it('is compared: names and workload', async () => {
    node.edit = (containers) =>
      containers.map((container) => ({
        ...container,
        ...{ podName: 'other', containerName: 'side' },
        workload: { kind: 'Deployment', name: 'web', truncated: false },
      }));
    expect(linesOf(await once())).toEqual([
      `- pod ${NAMESPACE}/${POD} (${uid}): "name" mismatch: cluster="web-1", agent="other"`,
      `- pod ${NAMESPACE}/${POD} (${uid}): "workload" mismatch: cluster="Pod/web-1", agent="Deployment/web"`,
      `- ${subject()}: "container name" mismatch: cluster="app", agent="side"`,
    ]);
  });

  it('is not blamed for labels that were changed since', async () => {
    await relabel({ role: 'leader' });
    const run = await once();
    expect(run.code).toBe(0);
    expect(run.stdout).toContain(
      `* pod ${NAMESPACE}/${POD} (${uid}): label "role" was changed after the pod was made: cluster="leader", agent="none"`,
    );
  });

  it('puts nothing raw on a terminal', async () => {
    const hostile = '\u001b]52;c;eA==\u0007\u009b31m\u202e';
    node.edit = (containers) =>
      containers.map((container) => ({ ...container, podName: hostile, containerName: hostile }));
    for (const output of ['text', 'json']) {
      const { code, stdout } = await once('-o', output);
      expect(code).toBe(3);
      expect(stdout).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
      expect(stdout).toContain(output === 'json' ? '\\u001b]52;c' : '\\u{1b}]52;c');
    }
  });
});

describe('an agent that cannot be asked', () => {
  it('is told with the reason: it does not run', async () => {
    const [, second] = agents;
    await second?.stop();
    const run = await once();
    expect(run.code).toBe(3);
    expect(run.stdout).toContain('=== Nodes in the cluster: 2, agent caches: 1.\n');
    expect(run.stdout).toMatch(
      /^=== Node "node-2": no agent cache available: agent agent-2\.runtime-enforcer /m,
    );
    await second?.start();
  });

  it('is told with the reason: it refuses who asks', async () => {
    const run = await runner.run(['--once'], { dnsName: 'controller' });
    expect(run.code).toBe(3);
    expect(run.stdout).toContain('=== Nodes in the cluster: 2, agent caches: 0.\n');
    expect(run.stdout).toContain('expected a certificate with the DNS name debugger');
  });
});

describe('the debugger', () => {
  it('says what it may not do', async () => {
    const run = await runner.run(['--once'], { account: 'nobody' });
    expect(run).toMatchObject({ code: 1, stdout: '' });
    expect(run.stderr).toContain('pods is forbidden');
  });

  it('goes on comparing until it is told to end', async () => {
    const run = await runner.run(['--interval=200ms'], {
      untilOutput: { text: '== Caches diff with cluster state: ', times: 3 },
    });
    expect(run).toMatchObject({ code: 0, stderr: '' });
  });

  it('refuses a command line that it does not understand', async () => {
    expect(await runner.run(['--once', '--interval=soon'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('--interval "soon"') as unknown,
    });
  });
});
