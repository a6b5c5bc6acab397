import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readRunOptions } from '../commands/run-options.ts';
import { startMetrics, type AgentMetrics } from '../metrics.ts';
import { startFakeRuntime, type FakeRuntime } from '../nri/fake-runtime.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import {
  createFakeKernel,
  fakeEvent,
  fakeReporting,
  fakeSeen,
  type FakeKernel,
} from '../node/fake-kernel.ts';
import { createStandaloneAgent, type StandaloneAgent } from './standalone-agent.ts';

const POLICY = `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicy
metadata: { name: web, namespace: shop }
spec:
  mode: protect
  rulesByContainer: { main: { executables: { allowed: [/bin/server] } } }
`;

let directory: string;
let runtime: FakeRuntime;
let kernel: FakeKernel;
let metrics: AgentMetrics;
let agent: StandaloneAgent;
let out: string[];
let reporting: ReturnType<typeof fakeReporting>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'standalone-agent-'));
  await mkdir(join(directory, 'policies'));
  await mkdir(join(directory, 'learned'));
  await writeFile(join(directory, 'policies', 'web.yaml'), POLICY);
  runtime = await startFakeRuntime({ socketPath: join(directory, 'nri.sock') });
  kernel = createFakeKernel();
  metrics = startMetrics();
  reporting = fakeReporting();
  out = [];
  const args = ['--policy-dir', 'policies', '--learn-dir', 'learned', '--nri-socket-path', 'nri.sock'];
  agent = createStandaloneAgent({
    options: readRunOptions(
      args.map((arg) => (arg.startsWith('-') ? arg : join(directory, arg))),
      { NODE_NAME: 'node-1' },
    ),
    ...{ kernel, recovered: [], file: undefined, log: reporting.log, metrics },
    writeOut: (line) => out.push(line) > 0,
  });
});
afterEach(async () => {
  await agent.stop();
  await runtime.close();
  metrics.stop();
  await rm(directory, { recursive: true });
});

function pod(name: string, policy?: string): NriPodSandbox {
  return {
    ...{ id: name, name, uid: name, namespace: 'shop', annotations: new Map(), cgroupParent: '/kubepods' },
    ...{ labels: new Map(policy === undefined ? [] : [[POLICY_LABEL, policy]]), runtimeHandler: '', pid: 1 },
  };
}
function container(id: string, podId: string): NriContainer {
  return {
    ...{ id, podSandboxId: podId, name: 'main', state: 'created', labels: new Map(), annotations: new Map() },
    ...{ args: [], cgroupsPath: `/${id}`, pid: 2, image: 'shop/web:1' },
  };
}
const only = (id: string) => {
  const found = kernel.binder.container(id);
  if (found === undefined) throw new Error(`container ${id} is not bound`);
  return found;
};

describe('an agent with a policy directory', () => {
  it('has its policies before the runtime asks, and lets the program decide when all is bound', async () => {
    const starting = agent.start();
    const plugin = await runtime.accept();
    expect(kernel.applied).toHaveLength(1);
    expect(kernel.commits.count).toBe(0);
    await plugin.configure();
    await plugin.synchronize([pod('web-1', 'web')], [container('c1', 'web-1')]);
    await starting;
    expect(kernel.commits.count).toBe(1);
    expect(only('c1').state).toBe('enforced');
  });

  it('binds and refuses, reports violations, learns, and tells its status', async () => {
    const [, plugin] = await Promise.all([agent.start(), runtime.serve()]);
    await plugin.startContainer(pod('web-1', 'web'), container('c1', 'web-1'));
    await plugin.startContainer(pod('db-1'), container('c2', 'db-1'));
    await expect(plugin.startContainer(pod('x-1', 'nope'), container('c3', 'x-1'))).rejects.toThrow(
      'pod shop/x-1 has policy nope associated, but the policy does not exist',
    );

    const learned = { kind: 'learned', mode: undefined, reason: undefined } as const;
    kernel.deliver([fakeEvent(only('c1')), fakeEvent(only('c2'), learned)]);
    expect(out.map((line) => JSON.parse(line) as object)).toMatchObject([
      { event: 'policy_violation', podName: 'web-1', policyName: 'web', executablePath: '/usr/bin/id' },
    ]);

    kernel.totals.set(only('c1').slot, 4n);
    kernel.seen = [fakeSeen(only('c1'), '1', 4n)];
    await plugin.removeContainer(pod('web-1', 'web'), container('c1', 'web-1'));
    expect(kernel.binder.container('c1')).toBeUndefined();

    const status = await agent.status();
    expect(status).toMatchObject({
      nodeName: 'node-1',
      attached: true,
      nriConnected: true,
      outcomes: { denied: 2 },
    });
    expect(status.policies.map(({ name }) => name)).toEqual(['shop/web']);
    const text = await metrics.text();
    expect(text).toContain('runtime_enforcer_containers_refused_total 1');
    expect(text).toContain('runtime_enforcer_policies{state="ready"} 1');

    await agent.stop();
    expect(JSON.parse(out[1] ?? '')).toMatchObject({ podName: 'web-1', occurrences: 4 });
    expect(await readFile(join(directory, 'learned/shop/pod-db-1.yaml'), 'utf8')).toContain('- /usr/bin/id');
  });

  it('binds a container that waited as soon as its policy comes, and reports what it runs', async () => {
    await Promise.all([agent.start(), runtime.serve([pod('late-1', 'late')], [container('c1', 'late-1')])]);
    expect(only('c1').state).toBe('waiting');
    const sleep = new TextEncoder().encode('/usr/bin/sleep');
    kernel.programs.set('c1', [{ pid: 5, path: sleep, kind: 'file', otherMountNamespace: false }]);
    await writeFile(join(directory, 'policies', 'late.yaml'), POLICY.replace('name: web', 'name: late'));
    for (let turn = 0; turn < 100 && out.length === 0; turn++) await delay(10);
    expect(only('c1').state).toBe('enforced');
    expect(JSON.parse(out[0] ?? '')).toMatchObject({ executablePath: '/usr/bin/sleep', origin: 'snapshot' });
  });

  it('stops learning a workload when a policy made from its proposal is there', async () => {
    const named = POLICY.replace(
      'name: web,',
      'name: other, labels: { runtimeenforcer.kubewarden.io/promoted-from: pod-db-1 },',
    );
    await writeFile(join(directory, 'policies', 'other.yaml'), named);
    const [, plugin] = await Promise.all([agent.start(), runtime.serve()]);
    await plugin.startContainer(pod('db-1'), container('c2', 'db-1'));
    kernel.deliver([fakeEvent(only('c2'), { kind: 'learned', mode: undefined, reason: undefined })]);
    await agent.stop();
    await expect(readFile(join(directory, 'learned/shop/pod-db-1.yaml'))).rejects.toThrow('ENOENT');
  });

  it('says when somebody overrides the policies or takes the enforcement off', async () => {
    await Promise.all([agent.start(), runtime.serve()]);
    kernel.enforcer.setOverride('monitor');
    kernel.attached = false;
    const messages = (): string[] => reporting.lines.map(({ message }) => message);
    for (let turn = 0; turn < 400 && !messages().some((text) => text.includes('taken off')); turn++)
      await delay(10);
    expect(messages()).toContain('override of this node changed');
    expect(messages()).toContain('enforcement was taken off this node; restart the agent to bring it back');
    expect(await metrics.text()).toContain('runtime_enforcer_attached 0');
  });
});
