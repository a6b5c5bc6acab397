import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { fakeStatus, startFakeApiServer, type FakeApiServer } from '@runtime-enforcer/kube/fake-api-server';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startFakeRuntime, type FakeRuntime, type FakeRuntimePlugin } from '../nri/fake-runtime.ts';
import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import { createFakePolicyApi, policySpec } from './fake-policy-api.ts';

const PROGRAM = join(import.meta.dirname, 'fake-node-agent.ts');
/** For a process to start, on a machine that does other things as well. */
const PATIENCE = { timeout: 40_000, interval: 50 };
const TEST_MS = 120_000;
/** Half a second where nothing else runs. */
const UNASKED_MAX_MS = 5_000;

const POD: NriPodSandbox = {
  ...{ id: 'p1', name: 'web-1', uid: '0c7f4e3e-7c0f-4d38-9a52-5b4a5a1d2c3b', namespace: 'shop' },
  ...{ annotations: new Map(), cgroupParent: '/kubepods', runtimeHandler: '', pid: 1 },
  labels: new Map([[POLICY_LABEL, 'web']]),
};
const CONTAINER: NriContainer = {
  ...{ id: 'c1', podSandboxId: 'p1', name: 'main', state: 'running', labels: new Map() },
  ...{ annotations: new Map(), args: [], cgroupsPath: '/c1', pid: 2, image: 'shop/web:1' },
};

interface Agent {
  readonly child: ChildProcess;
  log(): string;
  probe(path: '/healthz' | '/readyz'): Promise<string>;
  metrics(): Promise<string>;
  end(signal: NodeJS.Signals): Promise<void>;
}

let directory: string;
let api: FakeApiServer;
let runtime: FakeRuntime;
let agents: Agent[];
let served: { plugin: FakeRuntimePlugin; syncedAt: number; closedAt: number }[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'handover-'));
  [agents, served] = [[], []];
  const policies = createFakePolicyApi();
  policies.put('web', policySpec('/bin/server'));
  api = await startFakeApiServer((request) => {
    if (!policies.answer(request)) request.reply(404, fakeStatus(404, 'NotFound'));
  });
  await mkdir(join(directory, 'state'));
  await writeFile(
    join(directory, 'kubeconfig'),
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
      clusters: [{ name: 'fake', cluster: { server: api.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'test', user: {} }],
      contexts: [{ name: 'test', context: { cluster: 'fake', user: 'test' } }],
    }),
  );
  runtime = await startFakeRuntime({ socketPath: join(directory, 'nri.sock') });
  void serve();
});
afterEach(async () => {
  for (const { child } of agents) if (child.exitCode === null) child.kill('SIGKILL');
  await runtime.close();
  await api.stop();
  await rm(directory, { recursive: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function startAgent(pod: string): Promise<Agent> {
  const [health, metrics] = [await freePort(), await freePort()];
  const flags = {
    kubeconfig: join(directory, 'kubeconfig'),
    'grpc-mtls-enabled': 'false',
    'nri-socket-path': runtime.socketPath,
    'state-dir': join(directory, 'state'),
    'health-probe-bind-address': `127.0.0.1:${health}`,
    'metrics-bind-address': `127.0.0.1:${metrics}`,
  };
  const child = spawn(
    process.execPath,
    [PROGRAM, ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
    {
      env: {
        ...process.env,
        FAKE_NODE: directory,
        NODE_NAME: 'n1',
        POD_NAME: pod,
        POD_NAMESPACE: 'enforcer',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let log = '';
  child.stdout.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const get = async (port: number, path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    return answer === undefined ? 'no answer' : `${answer.status} ${await answer.text()}`;
  };
  const agent: Agent = {
    child,
    log: () => log,
    probe: (path) => get(health, path),
    metrics: () => get(metrics, '/metrics'),
    async end(signal) {
      const exited = once(child, 'exit');
      child.kill(signal);
      await exited;
    },
  };
  agents.push(agent);
  return agent;
}

/** Takes every plugin that comes, as a runtime does. */
async function serve(): Promise<void> {
  for (;;) {
    const plugin = await runtime.accept(TEST_MS).catch(() => undefined);
    if (plugin === undefined) return;
    await plugin.configure();
    await plugin.synchronize([POD], [CONTAINER]);
    const entry = { plugin, syncedAt: performance.now(), closedAt: Infinity };
    void plugin.closed.then(() => (entry.closedAt = performance.now()));
    served.push(entry);
  }
}

async function isReady(agent: Agent): Promise<void> {
  await expect.poll(() => agent.probe('/readyz'), PATIENCE).toBe('200 ok\n');
}

it(
  'goes to an agent that asks for it, back when that is killed, and stays with the newest pod',
  { timeout: TEST_MS },
  async () => {
    const old = await startAgent('old');
    await isReady(old);
    old.child.kill('SIGUSR2');
    await expect.poll(() => old.metrics(), PATIENCE).toContain('log_keys{log="violations"} 1');

    const next = await startAgent('new');
    await isReady(next);
    expect(served).toHaveLength(2);
    const unaskedMs = (served[1]?.syncedAt ?? 0) - (served[0]?.closedAt ?? 0);
    expect(unaskedMs).toBeLessThan(UNASKED_MAX_MS);
    expect(await old.probe('/healthz')).toBe('200 ok\n');
    const [status, ...why] = (await old.probe('/readyz')).split(' ');
    expect(status).toBe('503');
    expect(why.join(' ')).toMatch(/^handed this node over to the agent of pod enforcer\/new \(pid \d+/);
    // What was reported is known to the successor, and told by nobody else.
    expect(await next.metrics()).toContain('log_keys{log="violations"} 1');
    expect(await next.metrics()).toContain('runtime_enforcer_role{role="owner"} 1');
    expect(await old.metrics()).toContain('runtime_enforcer_role{role="standby"} 1');
    expect(await old.metrics()).not.toContain('log_keys');
    old.child.kill('SIGUSR2');

    await next.end('SIGKILL');
    await isReady(old);
    const again = await startAgent('new');
    await isReady(again);

    await old.end('SIGKILL');
    const restarted = await startAgent('old');
    await expect
      .poll(() => restarted.probe('/readyz'), PATIENCE)
      .toContain('pod enforcer/old has handed this node over before; taking over when it ends');
    expect(await restarted.probe('/healthz')).toBe('200 ok\n');
    await isReady(again);
    expect(await again.metrics()).toContain('log_keys{log="violations"} 1');

    await again.end('SIGTERM');
    await isReady(restarted);
    await restarted.end('SIGTERM');
    expect(restarted.child.exitCode).toBe(0);
    await expect(access(join(directory, 'overlap'))).rejects.toThrow();
  },
);

it('stays with an owner that does not answer, and says so', { timeout: TEST_MS }, async () => {
  const owner = await startAgent('owner');
  await isReady(owner);
  owner.child.kill('SIGSTOP');
  const asking = await startAgent('asking');
  await expect.poll(() => asking.log(), PATIENCE).toContain('does not answer and keeps it');
  expect(asking.log()).toContain('no answer within 5 s');
  expect(await asking.probe('/healthz')).toBe('200 ok\n');
  expect(await asking.probe('/readyz')).toContain('503 ');
  expect(served[0]?.closedAt).toBe(Infinity);
  owner.child.kill('SIGCONT');
  await isReady(asking);
  await expect(access(join(directory, 'overlap'))).rejects.toThrow();
});

it('is left alone while it is marked as released, also by who comes next', { timeout: TEST_MS }, async () => {
  const agent = await startAgent('a');
  await isReady(agent);
  await writeFile(join(directory, 'state', 'released'), '');
  await expect.poll(() => agent.probe('/readyz'), PATIENCE).toMatch(/^503 .*agent resume brings it back/);
  expect(await agent.probe('/healthz')).toBe('200 ok\n');
  // It says so at once, and gives up what it has open then.
  await expect.poll(() => existsSync(join(directory, 'opened-by')), PATIENCE).toBe(false);
  await agent.end('SIGKILL');

  const next = await startAgent('b');
  await expect.poll(() => next.probe('/readyz'), PATIENCE).toMatch(/^503 .*agent resume brings it back/);
  expect(await next.probe('/healthz')).toBe('200 ok\n');
  expect(await next.metrics()).toContain('runtime_enforcer_role{role="released"} 1');
  expect(existsSync(join(directory, 'opened-by'))).toBe(false);
  await rm(join(directory, 'state', 'released'));
  await isReady(next);
});
