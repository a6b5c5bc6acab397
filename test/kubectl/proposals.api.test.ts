import { PROMOTE_LABEL, PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import type { Promotion } from '@runtime-enforcer/controller/promotion/promotion-loop';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { type ClusterContents, clusterContents, startPromotion } from './cluster-contents.ts';
import { type PluginRunner, pluginRunner } from './plugin-runner.ts';

const NAMESPACE = 'learned';

let plane: ControlPlane;
let shell: PluginRunner;
let cluster: ClusterContents;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  cluster = await clusterContents(plane.admin.client, NAMESPACE);
  shell = await pluginRunner(plane, NAMESPACE);
});
afterAll(async () => {
  await shell.stop();
  await plane.stop();
});

const policyMode = async (name: string) =>
  (await cluster.get(WORKLOAD_POLICIES, name))?.['spec'] as { readonly mode: string } | undefined;

const observation = (path: string, more: object = {}) => ({
  containerName: 'app',
  executablePath: path,
  count: 5,
  firstSeen: '2026-01-01T00:00:00Z',
  lastSeen: '2026-01-02T00:00:00Z',
  origins: ['entrypoint'],
  pods: ['web-0'],
  nodes: ['node-1'],
  ...more,
});

describe('promote, where the controller runs', () => {
  let promotion: Promotion;
  beforeAll(async () => {
    promotion = startPromotion(plane.admin.client);
    await promotion.synced;
  });
  afterAll(async () => await promotion.stop());

  it('makes a policy in monitor mode, and waits for it', async () => {
    await cluster.proposal('deploy-first', { app: ['/usr/bin/ls'] });
    const { code, stdout, stderr } = await shell.plugin('proposal promote deploy-first');
    expect(stderr).toBe('');
    expect(stdout).toBe(
      'Promoted WorkloadPolicyProposal "deploy-first" in namespace "learned" to WorkloadPolicy in "monitor" mode.\n' +
        'WorkloadPolicy "deploy-first" in namespace "learned" has been created.\n',
    );
    expect(code).toBe(0);
    expect(await policyMode('deploy-first')).toMatchObject({
      mode: 'monitor',
      rulesByContainer: { app: { executables: { allowed: ['/usr/bin/ls'] } } },
    });
  });

  it('is the same at the top level, in protect mode, for several', async () => {
    await cluster.proposal('deploy-a', { app: ['/a'] });
    await cluster.proposal('deploy-b', { app: ['/b'] });
    const { code, stdout } = await shell.plugin('promote deploy-a wpp/deploy-b --mode protect');
    expect(code).toBe(0);
    expect(stdout.match(/has been created/g)).toHaveLength(2);
    expect(await policyMode('deploy-a')).toMatchObject({ mode: 'protect' });
    expect(await policyMode('deploy-b')).toMatchObject({ mode: 'protect' });
  });

  it('takes all that labels select', async () => {
    await cluster.proposal('deploy-x', { app: ['/a'] }, { metadata: { labels: { team: 'x' } } });
    await cluster.proposal('deploy-y', { app: ['/a'] }, { metadata: { labels: { team: 'y' } } });
    expect((await shell.plugin('promote -l team=x')).code).toBe(0);
    expect(await policyMode('deploy-x')).toBeDefined();
    expect(await policyMode('deploy-y')).toBeUndefined();
    expect((await shell.plugin('promote --all')).code).toBe(0);
    expect(await policyMode('deploy-y')).toBeDefined();
  });

  it('says that a promoted one is promoted', async () => {
    const { code, stdout } = await shell.plugin('promote deploy-first');
    expect(code).toBe(0);
    expect(stdout).toContain('is already promoted to WorkloadPolicy');
  });

  it('tells why the controller cannot promote', async () => {
    await cluster.policy('deploy-taken', { app: ['/mine'] });
    await cluster.proposal('deploy-taken', { app: ['/learned'] });
    const { code, stderr } = await shell.plugin('promote deploy-taken --timeout 20s');
    expect(code).toBe(1);
    expect(stderr).toContain('error: policy promotion failed: ');
    expect(stderr).toContain('kubectl describe wpp deploy-taken');
  });
});

describe('promote, where nothing answers', () => {
  it.each(['server', 'client'])('changes nothing in a dry run by the %s', async (how) => {
    await cluster.proposal(`deploy-dry-${how}`, { app: ['/a'] });
    const { code, stdout } = await shell.plugin(`promote deploy-dry-${how} --mode protect --dry-run=${how}`);
    expect(code).toBe(0);
    expect(stdout).toBe(
      `WorkloadPolicyProposal "deploy-dry-${how}" in namespace "learned" can be promoted to WorkloadPolicy in ` +
        '"protect" mode. Run again without --dry-run to do it.\n',
    );
    const proposal = await cluster.get(WORKLOAD_POLICY_PROPOSALS, `deploy-dry-${how}`);
    expect(proposal?.metadata.labels).toBeUndefined();
  });

  it('takes --dry-run without a value for one by the server', async () => {
    await cluster.proposal('deploy-bare', { app: ['/a'] });
    const { code, stdout } = await shell.plugin('promote --dry-run deploy-bare');
    expect(stdout).toContain('can be promoted');
    expect(code).toBe(0);
  });

  it('gives up at its time, and leaves the label', async () => {
    await cluster.proposal('deploy-alone', { app: ['/a'] });
    const { code, stderr } = await shell.plugin('promote deploy-alone --timeout 4s');
    expect(code).toBe(1);
    expect(stderr).toContain('Waiting: the controller has not made WorkloadPolicy "deploy-alone" yet.\n');
    expect(stderr).toContain('policy promotion did not complete successfully');
    const proposal = await cluster.get(WORKLOAD_POLICY_PROPOSALS, 'deploy-alone');
    expect(proposal?.metadata.labels?.[PROMOTE_LABEL]).toBe('monitor');
    expect((await shell.plugin('promote deploy-alone')).stdout).toContain('already promoted');
  });

  it('does not wait where that is not wanted', async () => {
    await cluster.proposal('deploy-quick', { app: ['/a'] });
    expect(await shell.plugin('promote deploy-quick --wait=false')).toMatchObject({ code: 0 });
  });

  it.each<[string, string, number, string]>([
    [
      'a name that does not exist',
      'promote nothing',
      1,
      'workloadpolicyproposal "nothing" not found in namespace "learned"',
    ],
    ['a mode that does not exist', 'promote x --mode block', 2, 'expected "monitor" or "protect"'],
    ['no name at all', 'promote', 2, 'name one or more proposals'],
    ['two ways at once', 'promote x --all', 2, 'exactly one of the three'],
    ['another kind', 'promote deployment/x', 2, 'is not a proposal'],
    ['a name that none can have', 'promote X_Y', 2, 'is not the name of a proposal'],
    ['an unknown way of dry run', 'promote x --dry-run=maybe', 2, 'expected "none", "client" or "server"'],
  ])('refuses %s', async (_, args, expected, text) => {
    const { code, stderr, stdout } = await shell.plugin(args);
    expect(stderr).toContain(text);
    expect(stdout).toBe('');
    expect(code).toBe(expected);
  });

  it('refuses a name that no pod can carry before it writes anything', async () => {
    const name = `deploy-${'x'.repeat(60)}`;
    await cluster.proposal(name, { app: ['/a'] });
    const { code, stderr } = await shell.plugin(['promote', name]);
    expect(code).toBe(1);
    expect(stderr).toContain('at most 63 characters');
    expect((await cluster.get(WORKLOAD_POLICY_PROPOSALS, name))?.metadata.labels).toBeUndefined();
  });

  it('goes on after one of several that cannot be promoted', async () => {
    await cluster.proposal('deploy-good', { app: ['/a'] });
    const { code, stderr, stdout } = await shell.plugin('promote nothing deploy-good --no-wait');
    expect(code).toBe(1);
    expect(stderr).toContain('"nothing" not found');
    expect(stdout).toContain('Promoted WorkloadPolicyProposal "deploy-good"');
  });
});

describe('looking at proposals', () => {
  beforeAll(async () => {
    await cluster.proposal(
      'deploy-web',
      { app: ['/app/server', '/bin/sh', '/usr/bin/id'] },
      {
        metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' }] },
        status: {
          observations: [observation('/app/server'), observation('/usr/bin/id', { origins: ['exec'] })],
        },
      },
    );
  });

  it('lists them', async () => {
    const { code, stdout } = await shell.plugin('proposal list deploy-web');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^NAME +WORKLOAD +CONTAINERS +PATHS +PROMOTE +AGE\n/);
    expect(stdout).toMatch(/\ndeploy-web +Deployment\/web +app +3 +<none> +\d+s\n$/);
  });

  it('prints the same objects as kubectl get', async () => {
    for (const format of ['json', 'name']) {
      const ours = await shell.plugin(`proposal list deploy-web -o ${format}`);
      const theirs = await shell.kubectl(['get', 'wpp', 'deploy-web', '-o', format]);
      if (format === 'name') expect(ours.stdout).toBe(theirs.stdout);
      else expect(JSON.parse(ours.stdout)).toEqual(JSON.parse(theirs.stdout));
    }
    const template = 'jsonpath={.spec.rulesByContainer.app.executables.allowed[*]}{"\\n"}';
    const ours = await shell.plugin(['proposal', 'list', 'deploy-web', '-o', template]);
    const theirs = await shell.kubectl(['get', 'wpp', 'deploy-web', '-o', template]);
    expect(ours.stdout).toBe(theirs.stdout);
  });

  it('reviews the evidence, and warns', async () => {
    const { code, stdout, stderr } = await shell.plugin('proposal review deploy-web');
    expect(code).toBe(3);
    expect(stdout).toMatch(/app .* dangerous, no evidence +\/bin\/sh\n/);
    expect(stdout).toMatch(/app .* only from kubectl exec +\/usr\/bin\/id\n/);
    expect(stdout).toMatch(/app .* - +\/app\/server\n/);
    expect(stderr).toContain('2 paths of 3 should be looked at.');
    expect(stderr).toMatch(/\/bin\/sh starts any program that it is told to \(https:/);
  });

  it('warns before it promotes', async () => {
    const { stderr } = await shell.plugin('promote deploy-web --dry-run=client');
    expect(stderr).toContain(
      '2 of 3 paths should be looked at: kubectl runtime-enforcer proposal review deploy-web',
    );
  });

  it('compares with a policy, from both sides', async () => {
    await cluster.policy('web', { app: ['/app/server', '/app/old'], side: ['/s'] });
    const ours = await shell.plugin('proposal diff deploy-web web');
    expect(ours.code).toBe(3);
    expect(ours.stdout).toBe(
      '--- wp/web\n+++ wpp/deploy-web\napp (1 path in both)\n- /app/old\n+ /bin/sh\n+ /usr/bin/id\n' +
        'side (container removed)\n- /s\n',
    );
    expect((await shell.plugin('policy diff web deploy-web')).stdout).toBe(ours.stdout);
  });

  it('keeps the promoted-from label in sight', async () => {
    const { stdout } = await shell.plugin('policy list deploy-first -o json');
    expect(
      (JSON.parse(stdout) as { metadata: { labels: Record<string, string> } }).metadata.labels,
    ).toMatchObject({
      [PROMOTED_FROM_LABEL]: 'deploy-first',
    });
  });
});
