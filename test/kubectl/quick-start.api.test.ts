import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { type ClusterContents, DEPLOYMENTS } from './cluster-contents.ts';
import { type PlayedNode, playedNode } from './played-node.ts';
import type { PluginRunner } from './plugin-runner.ts';
import { checkSession, playSession } from './recorded-session.ts';

const NAMESPACE = 'shop';

let node: PlayedNode;
let shell: PluginRunner;
let cluster: ClusterContents;
beforeAll(async () => {
  node = await playedNode(NAMESPACE);
  ({ shell, cluster } = node);
});
afterAll(async () => await node.stop());

describe('the quick start', () => {
  it('is gone through with the commands of the plugin, and the document shows what they show', async () => {
    const { learned, loaded, violated, cleared, podOf, violationsOf } = node;
    const session = playSession(shell);
    const { enforcer } = session;
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

    await checkSession('quick start', session);
  }, 180_000);

  it('is gone through with kubectl alone', async () => {
    const kubectl = async (args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await shell.kubectl(args);
      expect({ args, code }, stderr).toEqual({ args, code: 0 });
      return stdout;
    };
    const { learned, loaded, violated, cleared, violationsOf } = node;
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
    await eventually('the annotation is gone', async () => {
      const policy = await cluster.get(WORKLOAD_POLICIES, 'deploy-plain');
      const { annotations = {} } = policy?.metadata ?? {};
      return 'runtimeenforcer.kubewarden.io/acknowledge-1' in annotations ? undefined : true;
    });
    expect(await cluster.get(DEPLOYMENTS, 'plain')).toBeDefined();
  }, 120_000);
});
