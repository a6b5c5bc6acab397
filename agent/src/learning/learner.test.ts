import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { parseProposalDocuments } from '@runtime-enforcer/api/policy-document';
import { workloadFromPod } from '@runtime-enforcer/api/workload';
import type { WorkloadPolicyProposal } from '@runtime-enforcer/api/workload-policy-proposal';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ExecEvent } from '../kernel/enforcer.ts';
import { fakeContainer, fakeEvent, fakeKey, fakeReporting, fakeSeen } from '../node/fake-kernel.ts';
import { createLearner, type Learner } from './learner.ts';

let directory: string;
let reporting: ReturnType<typeof fakeReporting>;
let promoted: Set<string>;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'learner-'));
  reporting = fakeReporting();
  promoted = new Set();
});
afterEach(async () => rm(directory, { recursive: true }));

async function started(): Promise<Learner> {
  const learner = createLearner({
    ...{ directory, nodeName: 'node-1', ...reporting, now: () => 5_000 },
    isPromoted: (namespace, name) => promoted.has(`${namespace}/${name}`),
  });
  await learner.start();
  return learner;
}

function pod(podName: string, more: Partial<BoundContainer> = {}): BoundContainer {
  const labels = new Map([['pod-template-hash', '5d59d67564']]);
  return fakeContainer({
    podName,
    labels,
    workload: workloadFromPod(podName, labels),
    state: 'learning',
    ...more,
  });
}
const WEB = pod('web-5d59d67564-x2k8p');
const FILE = 'shop/deploy-web.yaml';

function learned(container: BoundContainer, path: string, more: Partial<ExecEvent> = {}): ExecEvent {
  return fakeEvent(container, {
    ...{
      kind: 'learned',
      key: fakeKey(`${container.containerId} ${path}`),
      mode: undefined,
      reason: undefined,
    },
    path: new TextEncoder().encode(path),
    ...more,
  });
}

async function proposal(file = FILE): Promise<WorkloadPolicyProposal> {
  const parsed = parseProposalDocuments({ file, content: await readFile(join(directory, file)) });
  const [only] = parsed.ok ? parsed.values : [];
  if (only === undefined) throw new Error(`${file}: ${JSON.stringify(parsed)}`);
  return only;
}

function allowed({ spec }: WorkloadPolicyProposal, container = 'main'): readonly string[] {
  return spec.rulesByContainer.get(container)?.executables.allowed ?? [];
}

const files = async (): Promise<string[]> =>
  (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !entry.name.startsWith('.tmp-'))
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1))
    .sort();

describe('learning', () => {
  it('writes one proposal per workload, with owner, paths and evidence', async () => {
    const learner = await started();
    const second = pod('web-5d59d67564-9qz7c', { containerId: 'c2', slot: 2, containerName: 'side' });
    learner.events([
      learned(WEB, '/bin/server', { origin: 'entrypoint' }),
      learned(second, '/bin/proxy'),
      learned(pod('db-5d59d67564-x2k8p', { containerId: 'c3' }), '/bin/db'),
    ]);
    await learner.stop();
    expect(await files()).toEqual(['shop/deploy-db.yaml', FILE]);
    const { metadata, spec, status } = await proposal();
    expect(metadata.ownerReferences).toEqual([{ kind: 'Deployment', name: 'web' }]);
    expect([...spec.rulesByContainer.keys()]).toEqual(['main', 'side']);
    expect(status?.observations[0]).toEqual({
      ...{ containerName: 'main', executablePath: '/bin/server', count: 1, origins: ['entrypoint'] },
      ...{ firstSeen: '1970-01-01T00:00:01.000Z', lastSeen: '1970-01-01T00:00:01.000Z' },
      ...{ pods: ['web-5d59d67564-x2k8p'], nodes: ['node-1'] },
    });
  });

  it('is on disk a moment after it was seen', async () => {
    const learner = await started();
    learner.events([learned(WEB, '/bin/server')]);
    for (let turn = 0; turn < 100 && (await files()).length === 0; turn++) await delay(10);
    expect(allowed(await proposal())).toEqual(['/bin/server']);
    await learner.stop();
  });

  it('counts repeats, also over a restart, and lists each path once', async () => {
    const first = await started();
    first.events([learned(WEB, '/bin/server')]);
    first.counts([fakeSeen(WEB, 'c1 /bin/server', 4n, { mode: undefined, lastMs: 60_000 })]);
    first.counted(new Set([WEB.containerId]));
    await first.stop();
    const second = await started();
    second.events([learned(WEB, '/bin/server'), learned(WEB, '/bin/other')]);
    await second.stop();
    const found = await proposal();
    expect(allowed(found)).toEqual(['/bin/other', '/bin/server']);
    const observed = found.status?.observations.find(
      ({ executablePath }) => executablePath === '/bin/server',
    );
    expect(observed?.count).toBe(5);
    expect(observed?.lastSeen).toBe('1970-01-01T00:01:00.000Z');
  });

  it('takes what already ran, with its origin, and not what has no listable path', async () => {
    const learner = await started();
    const program = { pid: 1, kind: 'file' as const, otherMountNamespace: false };
    const path = (text: string): Uint8Array => new TextEncoder().encode(text);
    learner.running(WEB, [
      { ...program, path: path('/bin/server') },
      { ...program, path: path('/bin/gone'), kind: 'deleted' },
      { ...program, path: path('/bin/elsewhere'), otherMountNamespace: true },
    ]);
    learner.events([
      learned(WEB, '/usr/bin/hidden', { reason: 'Memfd' }),
      learned(WEB, '/tmp/unlinked', { reason: 'Unlinked' }),
      learned(WEB, 'relative'),
    ]);
    await learner.stop();
    const found = await proposal();
    expect(allowed(found)).toEqual(['/bin/server']);
    expect(found.status?.observations[0]?.origins).toEqual(['snapshot']);
  });

  it('stops at 100 paths, says so, and goes on counting those', async () => {
    const learner = await started();
    const paths = Array.from({ length: 130 }, (_, index) => `/tmp/tool-${index}`);
    learner.events(paths.map((path) => learned(WEB, path)));
    await learner.stop();
    const found = await proposal();
    expect(allowed(found)).toHaveLength(100);
    expect(found.status?.conditions.map(({ type, status }) => [type, status])).toEqual([['Full', 'True']]);
    expect(reporting.counters.value('learned_paths_refused')).toBe(30);
  });

  it('leaves pods alone that carry the policy label, whatever it says', async () => {
    const learner = await started();
    for (const value of ['web', '', '../x']) {
      learner.events([learned(pod('web-1', { labels: new Map([[POLICY_LABEL, value]]) }), '/bin/a')]);
    }
    await learner.stop();
    expect(await files()).toEqual([]);
  });

  it('stops for a workload that has its policy', async () => {
    const learner = await started();
    promoted.add('shop/deploy-web');
    learner.events([learned(WEB, '/bin/a')]);
    await learner.stop();
    expect(await files()).toEqual([]);
  });
});

describe('proposal files', () => {
  it('of a proposal that is marked for promotion stay as they are', async () => {
    const first = await started();
    first.events([learned(WEB, '/bin/a')]);
    await first.stop();
    const path = join(directory, FILE);
    const marked = (await readFile(path, 'utf8')).replace(
      'namespace: shop\n',
      'namespace: shop\n  labels: { runtimeenforcer.kubewarden.io/promote: monitor }\n',
    );
    await writeFile(path, marked);
    const second = await started();
    second.events([learned(WEB, '/bin/b')]);
    await second.stop();
    expect(await readFile(path, 'utf8')).toBe(marked);
  });

  it('keep what a user took out or added while learning goes on', async () => {
    const learner = await started();
    learner.events([learned(WEB, '/bin/a'), learned(WEB, '/bin/b')]);
    for (let turn = 0; turn < 100 && (await files()).length === 0; turn++) await delay(10);
    const path = join(directory, FILE);
    await writeFile(path, (await readFile(path, 'utf8')).replace('- /bin/a\n', '- /opt/own\n'));
    learner.events([learned(WEB, '/bin/c')]);
    await learner.stop();
    expect(allowed(await proposal())).toEqual(['/bin/b', '/bin/c', '/opt/own']);
  });

  it.each([
    ['is no YAML', 'a: [', 'deploy-web.yaml:1'],
    ['holds another proposal', undefined, 'holds something else than the proposal shop/deploy-web alone'],
  ])('that %s are left alone, and said so', async (_what, text, message) => {
    await mkdir(join(directory, 'shop'));
    const path = join(directory, FILE);
    const other =
      'apiVersion: runtimeenforcer.kubewarden.io/v1alpha1\nkind: WorkloadPolicyProposal\n' +
      'metadata: { name: other, namespace: shop }\nspec: {}\n';
    await writeFile(path, text ?? other);
    const learner = await started();
    learner.events([learned(WEB, '/bin/a')]);
    await learner.stop();
    expect(await readFile(path, 'utf8')).toBe(text ?? other);
    expect(String(reporting.lines.find(({ level }) => level === 'error')?.fields['err'])).toContain(message);
    expect(reporting.counters.value('proposal_failures')).toBe(1);
  });

  it('are never anywhere else, whatever a tenant calls things', async () => {
    const learner = await started();
    const names = ['../../etc/passwd', '..', 'a/b', '', 'A', '\u0000', 'x'.repeat(250), 'ünïcode', '-a'];
    names.forEach((name, index) => {
      const workload = { kind: 'Pod', name, truncated: false } as const;
      const ids = { containerId: `n${index}`, slot: index + 1 };
      learner.events([learned(pod(name, { workload, ...ids }), '/bin/a')]);
      learner.events([learned(pod('ok', { namespace: name, ...ids, containerId: `s${index}` }), '/bin/a')]);
      learner.events([
        learned(pod('ok-2', { containerName: name, ...ids, containerId: `c${index}` }), '/bin/a'),
      ]);
    });
    await learner.stop();
    expect(await readdir(directory)).toEqual(['shop']);
    expect(await readdir(join(directory, '..'))).not.toContain('etc');
    for (const file of await files()) expect(file).toMatch(/^shop\/[a-z0-9-]+\.yaml$/);
    expect(reporting.counters.value('learned_workloads_refused')).toBeGreaterThan(10);
  });

  it('that cannot be written are written later', async () => {
    const learner = await started();
    await writeFile(join(directory, 'shop'), 'in the way');
    learner.events([learned(WEB, '/bin/a')]);
    while (reporting.counters.value('proposal_failures') === 0) await delay(10);
    await rm(join(directory, 'shop'));
    learner.events([learned(WEB, '/bin/b')]);
    await learner.stop();
    expect(allowed(await proposal())).toEqual(['/bin/a', '/bin/b']);
    await chmod(directory, 0o755);
  });
});
