import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { examplePath } from '@runtime-enforcer/agent/policies/policy-example';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { policyDigest } from '@runtime-enforcer/api/policy-digest';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import { knownPolicy, statusOf } from '@runtime-enforcer/controller/status/known-policy';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../cluster/port.ts';
import { type ControllerPlace, controllerPlace } from '../controller/controller-process.ts';
import { createAgentPod, type SimulatedAgent, simulatedAgent } from '../controller/simulated-agents.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { eventually } from '../runtime/eventually.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { type ClusterContents, DEPLOYMENTS, PODS } from './cluster-contents.ts';
import { type LivingCluster, livingCluster } from './living-cluster.ts';
import type { PluginRunner } from './plugin-runner.ts';
import { type SessionStep, withSession } from './recorded-session.ts';

const NAMESPACE = 'shop';
const NODE = 'node-1';
const DOCUMENT = join(REPOSITORY, 'docs/plugin.md');
/** Writes what the commands show into the document, instead of comparing. */
const WRITES_SESSION = process.env['RUNTIME_ENFORCER_WRITE_SESSION'] === 'true';

let living: LivingCluster;
let shell: PluginRunner;
let cluster: ClusterContents;
let place: ControllerPlace;
let agent: SimulatedAgent;
beforeAll(async () => {
  living = await livingCluster(NAMESPACE, [NODE]);
  ({ shell, cluster } = living);
  const { plane } = living;
  place = await controllerPlace(plane);
  const [port = 0] = await freePorts(1);
  agent = await simulatedAgent({ authority: plane.credentials.authority, port, index: 1, nodeName: NODE });
  await agent.start();
  await createAgentPod(plane.admin.client, agent);
  const controller = await place.start({ args: [`--wp-status-reconciler-agent-grpc-port=${port}`] });
  await controller.ready();
  await place.installWebhooks(controller);
});
afterAll(async () => {
  await place.stop();
  await agent.stop();
  await living.stop();
});

/** What an agent does: a proposal of what it has seen, and the evidence. */
async function learned(name: string, paths: readonly string[]): Promise<void> {
  await cluster.deployment(name);
  const proposal = `deploy-${name}`;
  const ownerReferences = [{ apiVersion: '', kind: 'Deployment', name, uid: '' }];
  await cluster.proposal(proposal, { app: paths }, { metadata: { ownerReferences } });
  const seen = { firstSeen: '2026-01-31T12:00:00Z', lastSeen: '2026-01-31T12:00:00Z' };
  const pods = [await podOf(name)];
  for (const executablePath of paths.map(examplePath)) {
    agent.observations.put(`${proposal} ${executablePath}`, {
      ...{ namespace: NAMESPACE, proposal, containerName: 'app', executablePath, count: 12, ...seen },
      ...{ origins: ['entrypoint'], pods, nodes: [NODE] },
    });
  }
  agent.changed();
  await eventually('the evidence is in the status', async () => {
    const object = await cluster.get(WORKLOAD_POLICY_PROPOSALS, proposal);
    return JSON.stringify(object?.['status'] ?? {}).includes('"observations"') ? true : undefined;
  });
}

async function podOf(name: string): Promise<string> {
  return await eventually(`a pod of ${name} runs`, async () => {
    const { objects } = await pagedList(living.plane.admin.client, {
      path: collectionPath(PODS, NAMESPACE),
      query: { labelSelector: `app=${name}`, fieldSelector: 'status.phase=Running' },
    });
    const alive = objects.filter(({ metadata }) => metadata['deletionTimestamp'] === undefined);
    return alive.at(0)?.metadata.name;
  });
}

/** What an agent does: the policy as it is now is in the kernel. @returns once the status says so */
async function loaded(name: string): Promise<void> {
  const object = await eventually(
    `there is a policy ${name}`,
    async () => await cluster.get(WORKLOAD_POLICIES, name),
  );
  const { spec, generation } = knownPolicy(object);
  agent.policies.set(`${NAMESPACE}/${name}`, {
    ...{ state: 'ready', mode: spec.mode, paths: 3, digest: policyDigest(spec) },
  });
  agent.changed();
  await eventually(`${name} is ready`, async () => {
    const current = await cluster.get(WORKLOAD_POLICIES, name);
    const status = current && statusOf(current);
    return status?.phase === 'Ready' && status.observedGeneration === generation ? true : undefined;
  });
}

/** What an agent does: a container has started what is not on the list. @returns once the status has it */
async function violated(policyName: string, name: string, executablePath: string, action: PolicyMode) {
  const now = new Date().toISOString();
  agent.violations.put(`${policyName} ${executablePath} ${action}`, {
    ...{ namespace: NAMESPACE, policyName, podName: await podOf(name), containerName: 'app' },
    ...{ executablePath, nodeName: NODE, action, reason: 'Unlisted', origin: 'exec', occurrences: 1 },
    ...{ firstObservedTimestamp: now, lastObservedTimestamp: now },
  });
  agent.changed();
  await eventually(`${executablePath} is in the status`, async () => {
    const current = await cluster.get(WORKLOAD_POLICIES, policyName);
    const found =
      current && statusOf(current).violations.some((each) => each.executablePath === executablePath);
    return found === true ? true : undefined;
  });
}

async function violationsOf(name: string) {
  const object = await cluster.get(WORKLOAD_POLICIES, name);
  if (object === undefined) throw new Error(`there is no policy ${name}`);
  return statusOf(object);
}

const cleared = async (name: string): Promise<true> =>
  await eventually(`no violation of ${name} is active`, async () =>
    (await violationsOf(name)).activeViolationCount === 0 ? true : undefined,
  );

describe('the quick start', () => {
  it('is gone through with the commands of the plugin, and the document shows what they show', async () => {
    const steps: SessionStep[] = [];
    const enforcer = async (args: string, expected = 0): Promise<void> => {
      const command = `kubectl runtime-enforcer ${args}`;
      // In the order in which it is shown.
      const { code, stdout } = await shell.command(`${command} 2>&1`);
      steps.push({ command, shown: stdout });
      expect({ command, code }, stdout).toEqual({ command, code: expected });
    };

    await learned('web', ['/app/server', '/usr/bin/ls', '/usr/bin/sleep']);
    await enforcer('proposal list');
    await enforcer('proposal review deploy-web');
    await enforcer('promote deploy-web');
    await loaded('deploy-web');
    await enforcer('bind deployment/web deploy-web --yes --wait');
    await enforcer('policy show protection');
    await violated('deploy-web', 'web', '/usr/bin/ps', 'monitor');
    await enforcer('violations');
    await enforcer('simulate deploy-web --mode protect', 3);
    await enforcer('policy allow deploy-web app /usr/bin/ps');
    await loaded('deploy-web');
    await cleared('deploy-web');
    await enforcer('policy protect deploy-web');
    await loaded('deploy-web');
    await violated('deploy-web', 'web', '/usr/bin/cat', 'protect');
    await enforcer(`explain ${await podOf('web')} /usr/bin/cat`, 3);
    await enforcer('policy ack deploy-web 1 --reason "debug session"');
    await cleared('deploy-web');
    await enforcer('violations --acknowledged');
    const { acknowledgedViolations, violationCount } = await violationsOf('deploy-web');
    expect(violationCount).toBe(2);
    expect(acknowledgedViolations).toMatchObject([{ violation: { id: 1 }, reason: 'debug session' }]);

    const refused = await shell.kubectl(['delete', 'workloadpolicy', 'deploy-web']);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(await podOf('web'));
    await enforcer('unbind deployment/web --yes --wait');
    await eventually('the policy can be deleted', async () =>
      (await shell.kubectl(['delete', 'workloadpolicy', 'deploy-web'])).code === 0 ? true : undefined,
    );

    const document = await readFile(DOCUMENT, 'utf8');
    const current = withSession(document, steps);
    if (WRITES_SESSION) await writeFile(DOCUMENT, current);
    else expect(document, 'write it anew with RUNTIME_ENFORCER_WRITE_SESSION=true').toBe(current);
  }, 180_000);

  it('is gone through with kubectl alone', async () => {
    const kubectl = async (args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await shell.kubectl(args);
      expect({ args, code }, stderr).toEqual({ args, code: 0 });
      return stdout;
    };
    await learned('plain', ['/app/server', '/usr/bin/ls']);
    expect(await kubectl(['get', 'wpp'])).toContain('deploy-plain');
    await kubectl(['label', 'wpp', 'deploy-plain', 'runtimeenforcer.kubewarden.io/promote=monitor']);
    await loaded('deploy-plain');
    await eventually('the proposal is gone', async () =>
      (await cluster.get(WORKLOAD_POLICY_PROPOSALS, 'deploy-plain')) === undefined ? true : undefined,
    );
    const patch = (body: object): string[] => ['--type=merge', '-p', JSON.stringify(body)];
    const template = { metadata: { labels: { [POLICY_LABEL]: 'deploy-plain' } } };
    await kubectl(['patch', 'deployment', 'plain', ...patch({ spec: { template } })]);
    await kubectl(['rollout', 'status', 'deployment/plain', '--timeout=40s']);
    await violated('deploy-plain', 'plain', '/usr/bin/ps', 'monitor');
    expect(await kubectl(['get', 'wp', 'deploy-plain'])).toMatch(/monitor +Ready +1 +1/);

    const editor = join(shell.directory, 'editor.sh');
    await writeFile(
      editor,
      `#!/bin/sh\n/bin/sed -i 's|- /usr/bin/ls|- /usr/bin/ls\\n        - /usr/bin/ps|' "$1"\n`,
      {
        mode: 0o755,
      },
    );
    const edited = await shell.kubectl(['edit', 'wp', 'deploy-plain'], { env: { EDITOR: editor } });
    expect(edited.stdout).toContain('edited');
    await loaded('deploy-plain');
    await cleared('deploy-plain');
    await kubectl(['patch', 'wp', 'deploy-plain', ...patch({ spec: { mode: 'protect' } })]);
    await loaded('deploy-plain');
    await violated('deploy-plain', 'plain', '/usr/bin/cat', 'protect');
    await kubectl([
      'annotate',
      'wp',
      'deploy-plain',
      'runtimeenforcer.kubewarden.io/acknowledge-1=debug session',
    ]);
    await cleared('deploy-plain');
    const { acknowledgedViolations } = await violationsOf('deploy-plain');
    expect(acknowledgedViolations).toMatchObject([{ violation: { id: 1 }, reason: 'debug session' }]);
    const [object, deployment] = await Promise.all([
      cluster.get(WORKLOAD_POLICIES, 'deploy-plain'),
      cluster.get(DEPLOYMENTS, 'plain'),
    ]);
    expect(object?.metadata.annotations ?? {}).not.toHaveProperty([
      'runtimeenforcer.kubewarden.io/acknowledge-1',
    ]);
    expect(deployment).toBeDefined();
  }, 120_000);
});
