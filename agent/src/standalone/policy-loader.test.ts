import { describe, expect, it } from 'vitest';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { FileChange } from './directory-scan.ts';
import { createFakeKernel, fakeReporting } from '../node/fake-kernel.ts';
import { createPolicyEffect } from '../node/policy-effect.ts';
import { createPolicyLoader } from './policy-loader.ts';
import { createPolicyParser } from './policy-parser.ts';
import { createPolicySet } from './policy-set.ts';

function yaml(name: string, mode = 'protect', path = '/usr/bin/ls'): string {
  return `apiVersion: runtimeenforcer.kubewarden.io/v1alpha1
kind: WorkloadPolicy
metadata: { name: ${name}, namespace: shop }
spec:
  mode: ${mode}
  rulesByContainer: { main: { executables: { allowed: [${path}] } } }
`;
}

function content(file: string, text: string): FileChange {
  return { file, kind: 'content', content: new TextEncoder().encode(text) };
}

function loaderOverFake() {
  const kernel = createFakeKernel();
  const reporting = fakeReporting();
  const boundLate: BoundContainer[] = [];
  const policies = createPolicySet();
  const loader = createPolicyLoader({
    directory: '/policies',
    parser: createPolicyParser(),
    ...{ policies, ...reporting },
    effect: createPolicyEffect({
      ...{ ...reporting, table: kernel.table, binder: kernel.binder },
      onBoundLate: (container) => boundLate.push(container),
    }),
  });
  return { kernel, loader, policies, boundLate, ...reporting };
}

describe('policy files and the kernel', () => {
  it('loads and removes policies, and says so', async () => {
    const { kernel, loader, lines } = loaderOverFake();
    await loader.load([content('a.yaml', `${yaml('web')}---\n${yaml('db', 'monitor')}`)]);
    expect(kernel.table.states().size).toBe(2);
    await loader.load([{ file: 'a.yaml', kind: 'removed' }]);
    expect(kernel.removed).toEqual(['shop/web', 'shop/db']);
    expect(lines.map(({ message, fields }) => [message, fields['policy']])).toEqual([
      ['policy loaded', 'shop/web'],
      ['policy loaded', 'shop/db'],
      ['policy removed', 'shop/web'],
      ['policy removed', 'shop/db'],
    ]);
  });

  it('a broken edit keeps the last good policy and names file, line, column, field and what was expected', async () => {
    const { kernel, loader, policies, lines, counters } = loaderOverFake();
    await loader.load([content('a.yaml', yaml('web'))]);
    await loader.load([content('a.yaml', yaml('web', 'blok'))]);
    expect(kernel.applied).toHaveLength(1);
    expect(policies.policy('shop/web')?.spec.mode).toBe('protect');
    expect(lines.at(-1)?.level).toBe('error');
    expect(lines.at(-1)?.fields['errors']).toEqual([
      expect.stringMatching(
        /^\/policies\/a\.yaml:5:9: spec\.mode: .*blok.*; expected one of monitor, protect/,
      ),
    ]);
    expect(counters.value('policy_files_broken')).toBe(1);
  });

  it('keeps the policies of a file that cannot be read', async () => {
    const { kernel, loader, policies, counters } = loaderOverFake();
    await loader.load([content('a.yaml', yaml('web'))]);
    await loader.load([{ file: 'a.yaml', kind: 'unreadable', problem: 'permission is denied' }]);
    expect(policies.policy('shop/web')).toBeDefined();
    expect(kernel.removed).toEqual([]);
    expect(counters.value('policy_files_unreadable')).toBe(1);
  });

  it('names both files that hold a policy', async () => {
    const { kernel, loader, lines } = loaderOverFake();
    await loader.load([content('a.yaml', yaml('web'))]);
    await loader.load([content('b.yaml', yaml('web', 'monitor'))]);
    expect(kernel.applied).toHaveLength(1);
    expect(lines.at(-1)?.level).toBe('error');
    expect(lines.at(-1)?.fields).toEqual({
      ...{ policy: 'shop/web', file: '/policies/b.yaml', other: '/policies/a.yaml' },
    });
  });

  it('reports a policy that the kernel does not take, and goes on with the others', async () => {
    const { kernel, loader, lines, counters } = loaderOverFake();
    kernel.policyErrors.set('shop/web', 'the table is full; raise --capacity');
    await loader.load([content('a.yaml', yaml('web')), content('b.yaml', yaml('db'))]);
    const messages = lines.map(({ message, fields }) => [message, fields['policy'], fields['problem']]);
    expect(messages).toContainEqual(['policy failed', 'shop/web', 'the table is full; raise --capacity']);
    expect(messages).toContainEqual(['policy loaded', 'shop/db', undefined]);
    expect(counters.value('policies_failed')).toBe(1);
  });

  it('binds the containers that waited for the policy, and has them looked at', async () => {
    const { kernel, loader, boundLate } = loaderOverFake();
    const labels = new Map([[POLICY_LABEL, 'web']]);
    const pod = {
      ...{ id: 'p', name: 'web-1', uid: 'u', namespace: 'shop', labels, annotations: new Map() },
      ...{ cgroupParent: '', runtimeHandler: '', pid: 1 },
    };
    const container = {
      ...{ id: 'c1', podSandboxId: 'p', name: 'main', state: 'running' as const, labels: new Map() },
      ...{ annotations: new Map(), args: [], cgroupsPath: '/c1', pid: 2, image: '' },
    };
    await kernel.binder.reconcile([pod], [container]);
    await loader.load([content('a.yaml', yaml('db'))]);
    expect(boundLate).toEqual([]);
    await loader.load([content('b.yaml', yaml('web'))]);
    expect(boundLate.map(({ containerId, state }) => [containerId, state])).toEqual([['c1', 'enforced']]);
  });

  it('survives an error of the kernel side', async () => {
    const { kernel, loader, lines } = loaderOverFake();
    kernel.binder.policyChanged = () => Promise.reject(new Error('no such map'));
    await loader.load([content('a.yaml', yaml('web')), content('b.yaml', yaml('db'))]);
    expect(lines.filter(({ message }) => message === 'policy could not be changed')).toHaveLength(2);
  });
});

describe('large policy files', () => {
  it('are read in a thread, with the same result, while the event loop goes on', async () => {
    const parser = createPolicyParser();
    const paths = Array.from({ length: 1000 }, (_, index) => `/usr/bin/program-${index}`).join(', ');
    const text = Array.from({ length: 20 }, (_, index) => yaml(`web-${index}`, 'protect', paths)).join(
      '---\n',
    );
    let turns = 0;
    const ticking = setInterval(() => turns++, 5);
    const source = { file: 'a.yaml', content: new TextEncoder().encode(text) };
    const parsed = await parser.parse(source);
    clearInterval(ticking);
    await parser.stop();
    expect(parsed.ok && parsed.values.length).toBe(20);
    const rules = parsed.ok && parsed.values[19]?.spec.rulesByContainer.get('main');
    expect(rules && rules.executables.allowed.length).toBe(1000);
    expect(turns).toBeGreaterThan(10);
  });

  it('come one after the other, also when several are asked for at once', async () => {
    const parser = createPolicyParser();
    const paths = Array.from({ length: 900 }, (_, index) => `/usr/bin/program-${index}`).join(', ');
    const parse = async (name: string): Promise<string | undefined> => {
      const content = new TextEncoder().encode(yaml(name, 'protect', paths));
      const parsed = await parser.parse({ file: name, content });
      return parsed.ok ? parsed.values[0]?.metadata.name : undefined;
    };
    const names = await Promise.all(['a', 'b', 'c'].map(parse));
    names.push(await parse('d'));
    await parser.stop();
    expect(names).toEqual(['a', 'b', 'c', 'd']);
  });

  it('with an error say where it is', async () => {
    const parser = createPolicyParser();
    const text = yaml('web', 'protect', `${'/usr/bin/program, '.repeat(1)}${'/p, '.repeat(3000)}relative`);
    const parsed = await parser.parse({ file: 'a.yaml', content: new TextEncoder().encode(text) });
    await parser.stop();
    expect(parsed.ok).toBe(false);
    expect(!parsed.ok && parsed.errors[0]).toMatchObject({ file: 'a.yaml', line: 6 });
  });
});
