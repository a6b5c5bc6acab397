import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { objectKey } from '@runtime-enforcer/kube/kube-object';
import { pagedList } from '@runtime-enforcer/kube/paged-list';
import { collectionPath } from '@runtime-enforcer/kube/resource-path';
import { type ClusterContents, DEPLOYMENTS, PODS, violation, violationStatus } from './cluster-contents.ts';
import { type LivingCluster, livingCluster } from './living-cluster.ts';
import type { CommandResult, PluginRunner } from './plugin-runner.ts';

const NAMESPACE = 'rolling';
const QUESTION = 'Go on? [y/N] ';

let living: LivingCluster;
let shell: PluginRunner;
let cluster: ClusterContents;
beforeAll(async () => {
  living = await livingCluster(NAMESPACE, ['node-1', 'node-2']);
  ({ shell, cluster } = living);
  await cluster.policy(
    'web',
    { app: ['/app/server'] },
    { status: violationStatus([violation(3, '/bin/ps')]) },
  );
  for (const name of ['asked', 'rolled']) await cluster.deployment(name);
  await eventually('all pods run', async () => {
    const pods = await podLabels('app');
    return pods.length === 6 ? true : undefined;
  });
});
afterAll(async () => await living.stop());

/** What a label says on each pod of the namespace that has it. */
async function podLabels(label: string): Promise<string[]> {
  const { objects } = await pagedList(living.plane.admin.client, {
    path: collectionPath(PODS, NAMESPACE),
    query: { labelSelector: label },
  });
  return objects.map((pod) => pod.metadata.labels?.[label] ?? objectKey(pod));
}

const isBound = async (name: string): Promise<boolean> =>
  JSON.stringify(await cluster.get(DEPLOYMENTS, name)).includes(`"${POLICY_LABEL}":"web"`);
/** As it was shown, without what a terminal adds at the ends of lines. */
const shown = ({ stdout }: CommandResult): string => stdout.replaceAll('\r\n', '\n');

describe('a question on a terminal', () => {
  it.each(['n', '', 'no', 'yess'])('is no by %j', async (answer) => {
    const run = await shell.pluginOnTerminal('bind deployment/asked web', { input: `${answer}\n` });
    expect(shown(run)).toContain('All of its 3 pods are replaced');
    expect(shown(run)).toContain(QUESTION);
    expect(shown(run)).toContain('Nothing was changed.\n');
    expect(run.code).toBe(1);
    expect(await isBound('asked')).toBe(false);
  });

  it.each(['y', 'YES'])('is yes by %j', async (answer) => {
    const run = await shell.pluginOnTerminal('bind deployment/asked web', { input: `${answer}\n` });
    expect(shown(run)).toContain(QUESTION);
    expect(shown(run)).toContain('Bound Deployment "asked" in namespace "rolling" to "web".\n');
    expect(run.code).toBe(0);
    expect(await isBound('asked')).toBe(true);
    expect((await shell.plugin('unbind deployment/asked --yes')).code).toBe(0);
  });

  it('is not asked where that is not wanted', async () => {
    const run = await shell.pluginOnTerminal('bind deployment/asked web --dry-run=server');
    expect(shown(run)).not.toContain(QUESTION);
    expect(run.code).toBe(0);
  });

  it('asks for the reason of an acknowledgement', async () => {
    const run = await shell.pluginOnTerminal('policy ack web 3', { input: 'known and wanted\n' });
    expect(shown(run)).toContain('Successfully acknowledged violation 3');
    expect(run.code).toBe(0);
    const policy = await cluster.get(WORKLOAD_POLICIES, 'web');
    expect(policy?.metadata.annotations).toMatchObject({
      'runtimeenforcer.kubewarden.io/acknowledge-3': 'known and wanted',
    });
  });
});

describe('colours', () => {
  /** Select graphic rendition, behind an escape. */
  const SGR = /\p{Cc}\[\d+m/u;

  it('are on a terminal only, and never where they are not wanted', async () => {
    expect((await shell.pluginOnTerminal('doctor')).stdout).toMatch(SGR);
    expect((await shell.pluginOnTerminal('doctor', { env: { NO_COLOR: '1' } })).stdout).not.toMatch(SGR);
    expect((await shell.pluginOnTerminal('doctor', { env: { TERM: 'dumb' } })).stdout).not.toMatch(SGR);
    expect((await shell.plugin('doctor')).stdout).not.toMatch(SGR);
  });
});

describe('bind and unbind --wait', () => {
  it('end when all pods are new', async () => {
    const bound = await shell.plugin('bind deployment/rolled web --yes --wait --timeout 40s');
    expect(bound.stderr).toMatch(/Waiting: \d of 3 pods are new\./);
    expect(bound.stdout).toContain('all 3 pods are new.\n');
    expect(bound.code).toBe(0);
    expect(await podLabels(POLICY_LABEL)).toEqual(['web', 'web', 'web']);

    const unbound = await shell.plugin('unbind deployment/rolled --yes --wait --timeout 40s');
    expect(unbound.stdout).toContain('all 3 pods are new.\n');
    expect(unbound.code).toBe(0);
    expect(await podLabels(POLICY_LABEL)).toEqual([]);
  });

  it('say so when their time is over, and how to go on', async () => {
    await living.kubelets.stop();
    const { code, stdout, stderr } = await shell.plugin(
      'bind deployment/rolled web --yes --wait --timeout 3s',
    );
    expect(stdout).toContain('Bound Deployment "rolled"');
    expect(stderr).toContain('the rollout did not end in time');
    expect(stderr).toContain(`kubectl rollout status deployment/rolled -n ${NAMESPACE}`);
    expect(code).toBe(1);
    expect(await isBound('rolled')).toBe(true);
  });
});
