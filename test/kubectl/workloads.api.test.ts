import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { API_VERSION, POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import {
  type ClusterContents,
  clusterContents,
  DEPLOYMENTS,
  PODS,
  startPromotion,
  violation,
  violationStatus,
} from './cluster-contents.ts';
import { doctorVisits, type Finding } from './doctor-findings.ts';
import { type PluginRunner, pluginRunner } from './plugin-runner.ts';

const NAMESPACE = 'bound';

let plane: ControlPlane;
let shell: PluginRunner;
let cluster: ClusterContents;
beforeAll(async () => {
  plane = await startControlPlane();
  await installCustomResources(plane.admin.client);
  cluster = await clusterContents(plane.admin.client, NAMESPACE);
  shell = await pluginRunner(plane, NAMESPACE);
  await cluster.policy(
    'web',
    { app: ['/usr/bin/ls', '/app/server'] },
    { spec: { mode: 'protect' }, status: violationStatus([]) },
  );
});
afterAll(async () => {
  await shell.stop();
  await plane.stop();
});

const templateLabels = async (name: string) => {
  const deployment = (await cluster.get(DEPLOYMENTS, name)) as unknown as {
    readonly spec: {
      readonly template: { readonly metadata: { readonly labels: Readonly<Record<string, string>> } };
    };
  };
  return deployment.spec.template.metadata.labels;
};

describe('bind and unbind', () => {
  it('label the template, after saying what that does', async () => {
    await cluster.deployment('web', { containers: ['app', 'sidecar'] });
    const nobody = await shell.plugin('bind deployment/web web');
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toContain('nobody is there to confirm');
    expect(await templateLabels('web')).toEqual({ app: 'web' });

    const { code, stdout, stderr } = await shell.plugin('bind deploy/web web --yes');
    expect(stderr).toBe(
      'warning: container sidecar is not in policy web and stays unrestricted\n' +
        'This will bind Deployment "web" in namespace "bound" to "web".\n' +
        'All of its 3 pods are replaced (RollingUpdate).\n',
    );
    expect(stdout).toBe('Bound Deployment "web" in namespace "bound" to "web".\n');
    expect(code).toBe(0);
    expect(await templateLabels('web')).toEqual({ app: 'web', [POLICY_LABEL]: 'web' });
    expect((await shell.plugin('bind deployment/web web')).stdout).toContain('is already bound to "web"');

    expect((await shell.plugin('unbind deployment/web --dry-run=server')).stdout).toContain(
      'Would have: Unbound',
    );
    expect(await templateLabels('web')).toHaveProperty([POLICY_LABEL]);
    expect((await shell.plugin('unbind deployment/web -y')).code).toBe(0);
    expect(await templateLabels('web')).toEqual({ app: 'web' });
    expect((await shell.plugin('unbind deployment/web')).stdout).toContain('names no policy');
  });

  it.each<[string, string, number, string]>([
    [
      'a policy that does not exist',
      'bind deployment/lone nothing -y',
      1,
      'workloadpolicy "nothing" not found',
    ],
    ['a workload that does not exist', 'bind deployment/nothing web -y', 1, 'deployment "nothing" not found'],
    ['a pod', 'bind pod/x web', 2, 'chosen when it is created'],
    ['what is no workload', 'bind configmap/x web', 2, 'is not a kind of workload'],
    ['a name without a kind', 'bind lone web', 2, 'expected TYPE/NAME'],
  ])('refuse %s', async (_, args, expected, text) => {
    if ((await cluster.get(DEPLOYMENTS, 'lone')) === undefined) await cluster.deployment('lone');
    const { code, stderr } = await shell.plugin(args);
    expect(stderr).toContain(text);
    expect(code).toBe(expected);
  });
});

describe('explain', () => {
  beforeAll(async () => {
    await cluster.pod('web-0', { labels: { [POLICY_LABEL]: 'web' }, containers: ['app', 'side'] });
    await cluster.pod('free', {});
  });

  it.each<[string, number, string]>([
    ['explain web-0 /usr/bin/ls', 0, 'The exec is allowed.'],
    ['explain web-0 /usr/bin/ps', 3, 'The exec is denied (operation not permitted)'],
    ['explain pod/web-0 /usr/bin/ps -c side', 0, 'The exec is not restricted.'],
    ['explain free /usr/bin/ps', 0, 'nothing is checked, and what starts is learned'],
  ])('%s', async (args, expected, text) => {
    const { code, stdout } = await shell.plugin(args);
    expect(stdout).toContain(text);
    expect(code).toBe(expected);
  });

  it('tells the questions, the other name of the file, and how to allow it', async () => {
    const linked = await shell.plugin('explain web-0 /bin/ls -c app');
    expect(linked.stdout).toBe(
      'Does pod web-0 name a policy in its label? yes: web\n' +
        'Does WorkloadPolicy web exist? yes, in mode protect\n' +
        'Has node node-1 loaded it? no trouble is reported\n' +
        'Does the policy name container app? yes, with 2 allowed paths\n' +
        'Is /bin/ls one of them? no\n' +
        '\nThe exec is denied (operation not permitted), and reported as a violation.\n',
    );
    expect(linked.stderr).toContain('On the list is /usr/bin/ls.');
    const other = await shell.plugin('explain web-0 /usr/bin/ps');
    expect(other.stderr).toContain('Taken is container app of: app, side');
    expect(other.stderr).toContain('kubectl runtime-enforcer policy allow web app /usr/bin/ps -n bound');
    expect((await shell.plugin('explain web-0 ls')).stderr).toContain('does not start with "/"');
    expect((await shell.plugin('explain web-0 /x -c nope')).stderr).toContain(
      'container "nope" not found in pod "web-0"',
    );
  });
});

describe('simulate', () => {
  it('tries a policy on its violations, a proposal, and a file', async () => {
    const recorded = [
      violation(1, '/usr/bin/ps', { occurrences: 4 }),
      violation(0, '/a', { occurrences: 2 }),
    ];
    await cluster.policy('tried', { app: ['/a'] }, { status: violationStatus(recorded) });
    await cluster.proposal('tried', { app: ['/a'], other: ['/b'] });
    const { code, stdout } = await shell.plugin('simulate tried --mode protect');
    expect(code).toBe(3);
    expect(stdout).toMatch(/app +4 +denied \(Unlisted\) +\/usr\/bin\/ps\n/);
    expect(stdout).toContain('1 executable (4 execs) would be denied, 1 executable (2 execs) would pass.\n');
    expect(await shell.plugin('simulate tried --recorded proposal')).toMatchObject({ code: 0 });
    const input = '{"containerName":"app","executablePath":"/x","occurrences":3}\n{"msg":"other"}\n';
    const piped = await shell.plugin('simulate tried --recorded -', { input });
    expect(piped.stdout).toContain('1 executable (3 execs) would be reported');
    const broken = await shell.plugin('simulate tried --recorded -', { input: 'x\n' });
    expect(broken.stderr).toContain('-:1: the line is not JSON');
  });
});

describe('what is protected', () => {
  beforeAll(async () => {
    const labels = { [POLICY_LABEL]: 'web' };
    await cluster.pod('job-a-1', { labels: { ...labels, 'job-name': 'same' } });
    await cluster.pod('same-0', { labels: { ...labels, 'statefulset.kubernetes.io/pod-name': 'same-0' } });
    await cluster.pod('same-1', { labels: { ...labels, 'statefulset.kubernetes.io/pod-name': 'same-1' } });
    await cluster.pod('lost', { labels: { [POLICY_LABEL]: 'gone' } });
  });

  it('is a row for each workload and policy', async () => {
    const { stdout } = await shell.plugin('policy show protection');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['WORKLOAD', 'KIND', 'POLICY', 'MODE', 'STATUS'],
      ['bound/lost', 'Pod', 'gone', 'Unknown', 'Missing'],
      ['bound/same', 'Job', 'web', 'Protect', 'Ready'],
      ['bound/same', 'StatefulSet', 'web', 'Protect', 'Ready'],
      ['bound/web-0', 'Pod', 'web', 'Protect', 'Ready'],
      [''],
    ]);
    const data: unknown = JSON.parse((await shell.plugin('policy show protection -A -o json')).stdout);
    expect(data).toContainEqual({
      workload: 'bound/same',
      kind: 'Job',
      policy: 'web',
      mode: 'Protect',
      status: 'Ready',
    });
    const none = await shell.plugin('policy show protection -n default');
    expect(none).toMatchObject({ code: 0, stdout: '' });
    expect(none.stderr).toContain('No workloads protected by a policy');
    expect((await shell.plugin('policy show protection -n default -o json')).stdout).toBe('[]\n');
    const refused = await shell.plugin('policy show protection -o xml');
    expect(refused.stderr).toContain('invalid output "xml", expected "table", "json"');
    expect(refused.code).toBe(2);
  });

  it('is told on one screen, and pod by pod', async () => {
    const { code, stdout } = await shell.plugin('status');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Kubernetes: v1\.\d+/);
    expect(stdout).toContain('Agents:     0 ready on 0 nodes\n');
    const pods = await shell.plugin('status --pods');
    expect(pods.stdout).toMatch(/bound +lost +node-1 +gone +<none> +no: the policy does not exist\n/);
    expect(pods.stdout).toMatch(/bound +web-0 +node-1 +web +protect +no: no agent is ready on the node\n/);
  });
});

describe('doctor', () => {
  const diagnose = async (): Promise<readonly Finding[]> => await doctorVisits(shell).diagnose();
  const about = async (check: string, subject: string) =>
    (await diagnose()).find((finding) => finding.check === check && finding.subject.includes(subject));

  it('says what is missing in a cluster without the product, and exits with 3', async () => {
    const { code, stdout } = await shell.plugin('doctor');
    expect(code).toBe(3);
    expect(stdout).toContain('controller: no controller runs\n');
    expect(stdout).toContain('agent: no agent runs on any node\n');
    expect(stdout).toMatch(/\d+ things to repair\.\n$/);
  });

  it('finds a label that stands on the workload, and its repair works', async () => {
    await cluster.deployment('wrong', { labels: { [POLICY_LABEL]: 'web' } });
    const finding = await about('misplaced-labels', 'bound/wrong');
    expect(finding?.repair).toBe('kubectl runtime-enforcer bind deployment/wrong web -n bound');
    const words = finding?.repair?.split(' ').slice(2) ?? [];
    expect((await shell.plugin([...words, '--yes'])).code).toBe(0);
    expect(await about('misplaced-labels', 'bound/wrong')).toBeUndefined();
  });

  it('finds policies that nobody names, and its repair works', async () => {
    await cluster.policy('unused', { app: [] });
    const finding = await about('unused-policies', 'bound/unused');
    expect(finding?.severity).toBe('note');
    expect((await shell.kubectl(finding?.repair?.split(' ').slice(1) ?? [])).code).toBe(0);
    expect(await cluster.get(WORKLOAD_POLICIES, 'unused')).toBeUndefined();
    expect(await about('unused-policies', 'bound/unused')).toBeUndefined();
  });

  it('finds pods whose policy is not there, and the repair is what there is for it', async () => {
    const promotion = startPromotion(plane.admin.client);
    try {
      await promotion.synced;
      await cluster.proposal('gone', { app: ['/app/server'] });
      const proposed = await about('unbound-pods', 'bound/lost');
      expect(proposed?.severity).toBe('error');
      expect(proposed?.repair).toBe('kubectl runtime-enforcer promote gone -n bound');
      expect((await shell.command(proposed?.repair ?? 'false')).code).toBe(0);
      expect((await diagnose()).map(({ message }) => message)).not.toContainEqual(
        expect.stringContaining('it names policy "gone" and is not enforced: the policy does not exist'),
      );
    } finally {
      await promotion.stop();
      await cluster.remove(WORKLOAD_POLICIES, 'gone');
    }
    const alone = await about('unbound-pods', 'bound/lost');
    expect(alone?.repair).toBe('kubectl delete pod lost -n bound');
    expect((await shell.command(`${alone?.repair ?? 'false'} --grace-period=0 --force`)).code).toBe(0);
    expect(await about('unbound-pods', 'bound/lost')).toBeUndefined();
  });

  it('finds pods that a workload binds to a policy that is not there, and its repair unbinds them', async () => {
    const hash = { 'pod-template-hash': 'abcdef' };
    await cluster.deployment('astray', { template: { [POLICY_LABEL]: 'gone' } });
    await cluster.pod('astray-abcdef-x2x4l', { labels: { [POLICY_LABEL]: 'gone', ...hash } });
    const finding = await about('unbound-pods', 'bound/astray-abcdef-x2x4l');
    expect(finding?.repair).toBe('kubectl runtime-enforcer unbind deployment/astray -n bound');
    expect((await shell.command(`${finding?.repair ?? 'false'} --yes`)).code).toBe(0);
    expect(await templateLabels('astray')).toEqual({ app: 'astray' });
    // No controller of Deployments runs here that would replace it.
    await cluster.remove(PODS, 'astray-abcdef-x2x4l');
    expect(await about('unbound-pods', 'bound/astray')).toBeUndefined();
  });

  it('finds policies that are not in force everywhere until they are', async () => {
    const nodesWithIssues = { 'node-9': { code: 'Failed', message: 'a table is full' } };
    const status = { phase: 'Failed', totalNodes: 1, failedNodes: 1, nodesWithIssues };
    await cluster.policy('failed', { app: [] }, { status });
    const finding = await about('policies', 'bound/failed');
    expect(finding).toMatchObject({
      severity: 'error',
      message: 'it is not in force on all nodes (node-9: Failed a table is full)',
    });
    expect((await shell.command(finding?.repair ?? 'false')).stdout).toContain('a table is full');
    await cluster.remove(WORKLOAD_POLICIES, 'failed');
    expect(await about('policies', 'bound/failed')).toBeUndefined();
  });

  it('finds proposals that the controller cannot promote until the obstacle is gone', async () => {
    const promotion = startPromotion(plane.admin.client);
    try {
      await promotion.synced;
      await cluster.policy('deploy-taken', { app: ['/mine'] });
      await cluster.proposal('deploy-taken', { app: ['/learned'] });
      expect((await shell.plugin('promote deploy-taken --timeout 20s')).code).toBe(1);
      const finding = await about('promotions', 'bound/deploy-taken');
      expect(finding?.severity).toBe('error');
      expect((await shell.command(finding?.repair ?? 'false')).stdout).toContain('PromotionFailed');
      await cluster.remove(WORKLOAD_POLICIES, 'deploy-taken');
      await eventually('the proposal is promoted', async () =>
        (await cluster.get(WORKLOAD_POLICY_PROPOSALS, 'deploy-taken')) === undefined ? true : undefined,
      );
      expect(await about('promotions', 'bound/deploy-taken')).toBeUndefined();
    } finally {
      await promotion.stop();
    }
  });
});

describe('test', () => {
  const policy = {
    apiVersion: API_VERSION,
    kind: 'WorkloadPolicy',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { mode: 'protect', rulesByContainer: { app: { executables: { allowed: ['/app/server'] } } } },
  };
  const testOf = (expected: string) => ({
    apiVersion: API_VERSION,
    kind: 'PolicyTest',
    metadata: { name: 'web' },
    policy: 'web.yaml',
    execs: [
      { container: 'app', path: '/app/server', expect: 'allow' },
      { container: 'app', path: '/bin/sh', expect: expected },
    ],
  });
  const directoryOf = async (name: string, files: Readonly<Record<string, object>>): Promise<string> => {
    const directory = join(shell.directory, name);
    await mkdir(directory, { recursive: true });
    for (const [file, document] of Object.entries(files))
      await writeFile(join(directory, file), JSON.stringify(document));
    return directory;
  };

  it('needs no cluster, and says what is not as expected', async () => {
    const env = { KUBECONFIG: '/nonexistent' };
    const good = await directoryOf('good', { 'web.yaml': policy, 'web-test.yaml': testOf('deny') });
    expect(await shell.plugin(`test ${good}`, { env })).toMatchObject({ code: 0, stderr: '' });
    const bad = await directoryOf('bad', { 'web.yaml': policy, 'web-test.yaml': testOf('allow') });
    const report = join(shell.directory, 'report.xml');
    const failed = await shell.plugin(`test ${bad} --junit ${report}`, { env });
    expect(failed.code).toBe(3);
    expect(failed.stdout).toContain('/bin/sh');
    const xml = await readFile(report, 'utf8');
    expect(xml).toContain('<testsuite');
    expect(xml).toContain('failures="1"');
  });

  it('finds nothing to test where there is nothing', async () => {
    const empty = await directoryOf('empty', { 'web.yaml': policy });
    const { code, stderr } = await shell.plugin(`test ${empty}`);
    expect(stderr).toContain('holds no policy tests');
    expect(code).toBe(1);
  });
});
