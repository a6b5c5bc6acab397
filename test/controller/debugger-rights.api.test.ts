import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderChart } from '../chart/render-chart.ts';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { freePorts } from '../cluster/port.ts';
import { type RevocableRights, revocableRights } from '../cluster/revocable-rights.ts';
import { testsWithoutOneRight, unneededRights, type VisibleFunction } from '../cluster/visible-functions.ts';
import { debuggerRunner, type DebuggerRunner } from '../debugger/debugger-process.ts';
import { CONTROLLER_NAMESPACE } from './controller-process.ts';
import { createAgentPod, createBoundPod, type SimulatedAgent, simulatedAgent } from './simulated-agents.ts';

const NAMESPACE = 'shop';

let plane: ControlPlane;
let agent: SimulatedAgent;
let runner: DebuggerRunner;
let rights: RevocableRights;
let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-debugger-rights-'));
  plane = await startControlPlane();
  const { client } = plane.admin;
  for (const name of [NAMESPACE, CONTROLLER_NAMESPACE]) await plane.serviceAccount(name, 'default');
  const [port = 0] = await freePorts(1);
  runner = await debuggerRunner(plane, directory, port);
  agent = await simulatedAgent({ authority: plane.credentials.authority, index: 0, port });
  await agent.start();
  await createAgentPod(client, agent);
  const pod = { namespace: NAMESPACE, name: 'web-1', nodeName: agent.nodeName, policy: 'web' };
  await createBoundPod(client, pod);
  const roles = (await renderChart({ values: { debugger: { enabled: true } } }))
    .filter(({ template }) => template === 'templates/debugger/rbac.yaml')
    .map(({ object }) => object)
    .filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
  const account = { namespace: CONTROLLER_NAMESPACE, name: 'runtime-enforcer-debugger' };
  rights = revocableRights(client, account, roles);
});
afterAll(async () => {
  await agent.stop();
  await plane.stop();
  await rm(directory, { recursive: true, force: true });
});

const FUNCTIONS: readonly VisibleFunction[] = [
  [
    'what agents know is compared with the pods of the cluster',
    'list pods',
    async () => (await runner.run(['--once'])).stdout.includes('=== Node "node-0": '),
  ],
];

describe('without one right of the debugger', () => {
  it('there is a function for each verb on each kind of object', () => {
    expect(unneededRights(FUNCTIONS, rights)).toEqual([]);
  });

  testsWithoutOneRight(FUNCTIONS, () => rights);
});
