import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ACKNOWLEDGE_ANNOTATION_PREFIX, API_VERSION, POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { eventually } from '../runtime/eventually.ts';
import { type ClusterContents, clusterContents, violation, violationStatus } from './cluster-contents.ts';
import { type PluginRunner, pluginRunner } from './plugin-runner.ts';

const NAMESPACE = 'shop';

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

interface Spec {
  readonly mode: string;
  readonly rulesByContainer: Readonly<
    Record<string, { readonly executables: { readonly allowed: readonly string[] } }>
  >;
}

const spec = async (name: string) => (await cluster.get(WORKLOAD_POLICIES, name))?.['spec'] as Spec;
const list = async (name: string, container = 'app') =>
  (await spec(name)).rulesByContainer[container]?.executables.allowed;

describe('policy protect and monitor', () => {
  it('switch the mode, and say when it is that already', async () => {
    await cluster.policy('mode', { app: ['/a'] });
    expect(await shell.plugin('policy protect mode')).toEqual({
      code: 0,
      stdout: 'Successfully set WorkloadPolicy "mode" in namespace "shop" to "protect" mode.\n',
      stderr: '',
    });
    expect((await spec('mode')).mode).toBe('protect');
    expect((await shell.plugin('policy protect mode')).stdout).toContain('is already in "protect" mode');
    for (const how of ['client', 'server']) {
      const tried = await shell.plugin(`policy monitor mode --dry-run=${how}`);
      expect(tried.stdout).toBe('Would set WorkloadPolicy "mode" in namespace "shop" to "monitor" mode.\n');
    }
    expect((await spec('mode')).mode).toBe('protect');
    expect((await shell.plugin('policy monitor mode')).code).toBe(0);
    expect((await spec('mode')).mode).toBe('monitor');
  });

  it('wait, where that is wanted, until all nodes have it', async () => {
    await cluster.policy(
      'waited',
      { app: ['/a'] },
      { status: { ...violationStatus([]), observedGeneration: 1 } },
    );
    const waiting = shell.plugin('policy protect waited --wait');
    const generation = await eventually('the mode is set', async () =>
      (await spec('waited')).mode === 'protect'
        ? (await cluster.get(WORKLOAD_POLICIES, 'waited'))?.metadata['generation']
        : undefined,
    );
    await sleep(1_500);
    await plane.admin.client.request({
      method: 'PATCH',
      path: `/apis/${API_VERSION}/namespaces/${NAMESPACE}/workloadpolicies/waited/status`,
      patchType: 'application/merge-patch+json',
      body: { status: { observedGeneration: generation } },
    });
    const { code, stdout, stderr } = await waiting;
    expect(stderr).toBe('Waiting: no node has told of it.\n');
    expect(stdout).toContain('WorkloadPolicy "waited" in namespace "shop" is in force on all 1 node.\n');
    expect(code).toBe(0);
    const late = await shell.plugin('policy allow waited app /b --wait --timeout 1s');
    expect(late.stdout).toContain('Successfully updated executables');
    expect(late.stderr).toContain('was changed, and is not in force on all nodes yet');
    expect(late.code).toBe(1);
  });

  it('name the policy that is not there', async () => {
    const { code, stderr } = await shell.plugin('policy protect nothing -n default');
    expect(code).toBe(1);
    expect(stderr).toBe(
      'error: workloadpolicy "nothing" not found in namespace "default"\n' +
        'see what there is: kubectl get workloadpolicies -n default\n',
    );
  });
});

describe('policy allow and deny', () => {
  it('append and take away, and keep the order', async () => {
    await cluster.policy('lists', { app: ['/b', '/a'], side: [] });
    const allowed = await shell.plugin('policy allow lists app /d /c /a /d');
    expect(allowed.stdout).toBe(
      'Successfully updated executables for WorkloadPolicy "lists" in namespace "shop".\n',
    );
    expect(await list('lists')).toEqual(['/b', '/a', '/d', '/c']);
    expect((await shell.plugin('policy deny lists app /a /x')).code).toBe(0);
    expect(await list('lists')).toEqual(['/b', '/d', '/c']);
    expect((await shell.plugin('policy allow lists app /b')).stdout).toContain('No changes required');
    expect((await shell.plugin('policy deny lists app /x')).stdout).toContain('No changes required');
    expect(await list('lists', 'side')).toEqual([]);
  });

  it('show the list that would be, in a dry run', async () => {
    await cluster.policy('dry', { app: ['/a'] });
    for (const how of ['client', 'server']) {
      const { code, stdout } = await shell.plugin(`policy allow dry app /b --dry-run=${how}`);
      expect(code).toBe(0);
      expect(stdout).toBe(
        'Would allow executables for WorkloadPolicy "dry" in namespace "shop".\napp: /a, /b\n',
      );
    }
    const denied = await shell.plugin('policy deny dry app /a --dry-run=server');
    expect(denied.stdout).toContain('app: (nothing is allowed)');
    expect(await list('dry')).toEqual(['/a']);
  });

  it.each<[string, string, number, string]>([
    [
      'a container that is not named',
      'policy allow refusing other /b',
      1,
      'container "other" not found in policy',
    ],
    ['a policy without rules', 'policy allow empty app /b', 1, 'policy "empty" has no rules for containers'],
    ['a relative path', 'policy allow refusing app ls', 2, 'does not start with "/"'],
    ['no path', 'policy allow refusing app', 2, 'at least one executable'],
    ['a wrong id', 'policy ack refusing x1', 2, 'invalid violation id "x1": must be a decimal integer'],
    [
      'an id that is not there',
      'policy ack refusing 7 --reason x',
      1,
      'violation id 7 not found in status.violations',
    ],
    [
      'an id beyond all numbers',
      'policy ack refusing 99999999999999999999 --reason x',
      2,
      'invalid violation id "99999999999999999999": must be a decimal integer',
    ],
    ['an id in another writing', 'policy ack refusing 0x1 --reason x', 2, 'must be a decimal integer'],
    ['a negative id', 'policy ack refusing --reason x -- -1', 2, 'must be a decimal integer'],
    ['another kind', 'policy protect deployment/refusing', 2, 'is not a policy; expected NAME or wp/NAME'],
    ['a proposal', 'policy show wpp/refusing', 2, 'is not a policy; expected NAME or wp/NAME'],
  ])('refuse %s', async (_, args, expected, text) => {
    if ((await cluster.get(WORKLOAD_POLICIES, 'refusing')) === undefined) {
      await cluster.policy('refusing', { app: ['/a'] });
      await cluster.policy('empty', {});
    }
    const { code, stderr } = await shell.plugin(args);
    expect(stderr).toContain(text);
    expect(code).toBe(expected);
  });

  it('add a container only where that is said', async () => {
    await cluster.policy('growing', {});
    expect((await shell.plugin('policy allow growing app /a --add-container')).code).toBe(0);
    expect(await list('growing')).toEqual(['/a']);
  });

  it('allow what was violated, and only what a list can hold', async () => {
    const violations = [
      violation(0, '/usr/bin/ps'),
      violation(1, '/tmp/x (deleted)', { reason: 'Unlinked' }),
      violation(2, '/usr/bin/id', { containerName: 'side' }),
      violation(3, String.raw`/opt/\xff`),
    ];
    await cluster.policy('violated', { app: ['/a'], side: [] }, { status: violationStatus(violations) });
    expect((await shell.plugin('policy allow violated app --from-violations')).code).toBe(0);
    expect(await list('violated')).toEqual(['/a', '/usr/bin/ps', String.raw`/opt/\xff`]);
    expect(await list('violated', 'side')).toEqual([]);
    expect((await shell.plugin('policy allow violated --from-violations')).code).toBe(0);
    expect(await list('violated', 'side')).toEqual(['/usr/bin/id']);
  });

  it('take bytes that are no text as they are written, and never for other ones', async () => {
    await cluster.policy('bytes', { app: [] });
    const allow = 'kubectl runtime-enforcer policy allow bytes app';
    const raw = await shell.command(`${allow} "$(printf '/opt/\\377')"`);
    expect(raw.stderr).toContain('holds bytes that are not UTF-8');
    expect(raw.stderr).toContain(String.raw`'/opt/\xff'`);
    expect(raw.code).toBe(2);
    expect(await list('bytes')).toEqual([]);
    expect((await shell.command(`${allow} '/opt/\\xff'`)).code).toBe(0);
    expect(await list('bytes')).toEqual([String.raw`/opt/\xff`]);
    await cluster.pod('bytes-0', { labels: { [POLICY_LABEL]: 'bytes' } });
    const denied = await shell.command(`kubectl runtime-enforcer explain bytes-0 '/opt/\\xfe'`);
    const told = denied.stderr.split('To allow it: ')[1] ?? 'false';
    expect((await shell.command(told)).code).toBe(0);
    expect(await list('bytes')).toEqual([String.raw`/opt/\xff`, String.raw`/opt/\xfe`]);
  });

  it('lose nothing when several people edit at once', async () => {
    await cluster.policy('crowded', { app: ['/a'] });
    const paths = Array.from({ length: 6 }, (_, index) => `/tool-${index}`);
    const results = await Promise.all(
      paths.map(async (path) => await shell.plugin(`policy allow crowded app ${path}`)),
    );
    expect(results.map(({ code, stderr }) => [code, stderr])).toEqual(paths.map(() => [0, '']));
    expect((await list('crowded'))?.toSorted()).toEqual(['/a', ...paths]);
  });
});

describe('policy ack', () => {
  const annotations = async (name: string) =>
    (await cluster.get(WORKLOAD_POLICIES, name))?.metadata.annotations ?? {};
  const key = (id: number) => `${ACKNOWLEDGE_ANNOTATION_PREFIX}${id}`;
  beforeAll(async () => {
    await cluster.policy('acked', { app: [] }, { status: violationStatus([violation(3, '/usr/bin/ps')]) });
  });

  it('asks for a reason on standard input, and for one that says something', async () => {
    expect((await shell.plugin('policy ack acked 3', { input: '' })).stderr).toContain(
      'a reason is required',
    );
    expect((await shell.plugin('policy ack acked 3', { input: '   \n' })).code).toBe(2);
    expect((await shell.plugin(['policy', 'ack', 'acked', '3', '--reason', ''])).code).toBe(2);
    expect(await annotations('acked')).toEqual({});
  });

  it('tries it without keeping it', async () => {
    const { code, stdout } = await shell.plugin('policy ack acked 3 --reason tested --dry-run');
    expect(code).toBe(0);
    expect(stdout).toBe(
      'Would acknowledge violation 3 for WorkloadPolicy "acked" in namespace "shop".\n' +
        `annotation: ${key(3)}: tested\n` +
        'executable: /usr/bin/ps, container: app, pod: web-0\n' +
        'Dry-run completed; no changes were persisted.\n',
    );
    expect(await annotations('acked')).toEqual({});
  });

  it('writes the annotation, from a pipe as well, and again only for another reason', async () => {
    const first = await shell.plugin('policy ack acked 3', { input: ' a debug session \n' });
    expect(first.stdout).toBe(
      'Successfully acknowledged violation 3 for WorkloadPolicy "acked" in namespace "shop".\n',
    );
    expect(await annotations('acked')).toEqual({ [key(3)]: 'a debug session' });
    const again = await shell.plugin(['policy', 'ack', 'acked', '3', '--reason', 'a debug session']);
    expect(again.stdout).toContain('No changes required');
    expect((await shell.plugin('policy ack acked 3 --reason other')).code).toBe(0);
    expect(await annotations('acked')).toEqual({ [key(3)]: 'other' });
  });

  it('loses none of several at once', async () => {
    const ids = [0, 1, 2, 3, 4, 5];
    const violations = ids.map((id) => violation(id, `/usr/bin/tool-${id}`));
    await cluster.policy('acked-at-once', { app: [] }, { status: violationStatus(violations) });
    const results = await Promise.all(
      ids.map(async (id) => await shell.plugin(`policy ack acked-at-once ${id} --reason known`)),
    );
    expect(results.map(({ code }) => code)).toEqual(ids.map(() => 0));
    expect(Object.keys(await annotations('acked-at-once')).toSorted()).toEqual(ids.map(key));
  });

  it('refuses reasons that are no text, and very long ones', async () => {
    const escape = await shell.plugin(['policy', 'ack', 'acked', '3', '--reason', 'a\u001b]52;c;eA==\u0007']);
    expect(escape.stderr).toContain('control or invisible characters');
    expect(escape.stderr).not.toMatch(/\p{Cc}(?<!\n)/u);
    const long = await shell.plugin('policy ack acked 3', { input: 'x'.repeat(1_048_576) });
    expect(long.stderr).toContain('longer than 1024 characters');
  });
});

describe('policy create and diff', () => {
  const document = (name: string, more = '') =>
    `apiVersion: ${API_VERSION}\nkind: WorkloadPolicy\nmetadata:\n  name: ${name}\n${more}spec:\n  mode: protect\n` +
    '  rulesByContainer:\n    app:\n      executables:\n        allowed:\n          - /usr/bin/ls\n';

  it('creates all policies of a file, after checking them all', async () => {
    const file = join(shell.directory, 'two.yaml');
    await writeFile(file, `${document('made-1')}---\n${document('made-2').replace('/usr/bin/ls', 'ls')}`);
    const refused = await shell.plugin(['policy', 'create', '-f', file]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      'two.yaml:23:13: spec.rulesByContainer.app.executables.allowed[0]: "ls" does not',
    );
    expect(await cluster.get(WORKLOAD_POLICIES, 'made-1')).toBeUndefined();

    await writeFile(file, `${document('made-1')}---\n${document('made-2')}`);
    const tried = await shell.plugin(['policy', 'create', '-f', file, '--dry-run=server']);
    expect(tried.stdout).toContain(
      'workloadpolicy.runtimeenforcer.kubewarden.io/made-1 created (server dry run)',
    );
    expect(await cluster.get(WORKLOAD_POLICIES, 'made-1')).toBeUndefined();
    expect((await shell.plugin(['policy', 'create', '-f', file])).code).toBe(0);
    expect(await list('made-2')).toEqual(['/usr/bin/ls']);
    const again = await shell.plugin(['policy', 'create', '-f', file]);
    expect(again.stderr).toContain('WorkloadPolicy "made-1" in namespace "shop" already exists');
  });

  it('reads standard input, and compares a file with what there is', async () => {
    const created = await shell.plugin('policy create -f -', { input: document('piped') });
    expect(created.stdout).toBe('workloadpolicy.runtimeenforcer.kubewarden.io/piped created\n');
    const same = await shell.plugin('policy diff piped -f -', { input: document('piped') });
    expect(same).toMatchObject({ code: 0, stdout: 'The rules are the same.\n' });
    const other = await shell.plugin('policy diff piped -f -', {
      input: document('piped').replace('/usr/bin/ls', '/usr/bin/ps'),
    });
    expect(other.code).toBe(3);
    expect(other.stdout).toContain('- /usr/bin/ls\n+ /usr/bin/ps\n');
  });

  it('takes the namespace of the file, and refuses two', async () => {
    const written = document('placed', '  namespace: default\n');
    const refused = await shell.plugin('policy create -f - -n shop', { input: written });
    expect(refused.stderr).toContain('the file says namespace "default", and --namespace says "shop"');
    expect((await shell.plugin('policy create -f -', { input: written })).code).toBe(0);
    expect((await shell.kubectl(['get', 'wp', 'placed', '-n', 'default', '-o', 'name'])).code).toBe(0);
  });
});

describe('violations', () => {
  beforeAll(async () => {
    const old = {
      lastObservedTimestamp: '2020-01-01T00:00:00Z',
      firstObservedTimestamp: '2020-01-01T00:00:00Z',
    };
    const fresh = { lastObservedTimestamp: new Date().toISOString().replace(/\.\d+/, '') };
    await cluster.policy(
      'noisy',
      { app: [] },
      { status: violationStatus([violation(5, '/usr/bin/new', fresh), violation(4, '/usr/bin/old', old)]) },
    );
  });

  it('are listed newest first', async () => {
    const { code, stdout } = await shell.plugin('violations --policy noisy');
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^POLICY +ID +LAST SEEN +COUNT +ACTION +POD +CONTAINER +EXECUTABLE$/);
    expect(lines.slice(1).map((line) => line.split(/ {2,}/).at(-1))).toEqual([
      '/usr/bin/new',
      '/usr/bin/old',
    ]);
    expect((await shell.plugin('violations noisy --since 1h --no-headers')).stdout.split('\n')).toHaveLength(
      2,
    );
    const data = JSON.parse((await shell.plugin('violations noisy -o json')).stdout) as readonly object[];
    expect(data[0]).toMatchObject({
      namespace: 'shop',
      policy: 'noisy',
      id: 5,
      executablePath: '/usr/bin/new',
    });
    expect((await shell.plugin('violations -A --no-headers')).stdout).toContain('/usr/bin/new');
  });

  it('come live', async () => {
    const watching = shell.plugin('violations noisy -w', { untilOutput: '/usr/bin/live' });
    const current = await cluster.get(WORKLOAD_POLICIES, 'noisy');
    await sleep(3_000);
    await plane.admin.client.request({
      method: 'PUT',
      path: `/apis/${API_VERSION}/namespaces/${NAMESPACE}/workloadpolicies/noisy/status`,
      body: {
        ...current,
        status: violationStatus([violation(6, '/usr/bin/live'), violation(5, '/usr/bin/new')]),
      },
    });
    const { code, stdout } = await watching;
    expect(stdout).toContain('/usr/bin/live');
    expect(code).toBe(0);
  });

  it('come live also after the API server was away', async () => {
    await cluster.policy(
      'watched',
      { app: [] },
      { status: violationStatus([violation(0, '/usr/bin/first')]) },
    );
    const watching = shell.plugin('violations watched -w', { untilOutput: '/usr/bin/after' });
    await sleep(3_000);
    await plane.restartApiServer(2_000);
    await plane.admin.client.request({
      method: 'PATCH',
      path: `/apis/${API_VERSION}/namespaces/${NAMESPACE}/workloadpolicies/watched/status`,
      patchType: 'application/merge-patch+json',
      body: { status: violationStatus([violation(1, '/usr/bin/after'), violation(0, '/usr/bin/first')]) },
    });
    const { code, stdout } = await watching;
    expect(stdout.match(/\/usr\/bin\/first/g)).toHaveLength(1);
    expect(stdout.match(/\/usr\/bin\/after/g)).toHaveLength(1);
    expect(code).toBe(0);
  });
});
