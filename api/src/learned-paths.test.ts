import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ExecutablePath } from './executable-path.ts';
import { addPaths, emptyProposal, FULL_CONDITION, learn, type LearnedExec } from './learned-paths.ts';
import { MAX_CONTAINERS, MAX_LEARNED_BYTES } from './limits.ts';
import { workloadPolicyProposalObject } from './resource-object.ts';
import { parseWorkloadPolicyProposal } from './workload-policy-proposal.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const NOON = '2026-01-31T12:00:00Z';
const LATER = '2026-01-31T13:00:00Z';

function exec(path: string, more: Partial<LearnedExec> = {}): LearnedExec {
  return {
    containerName: 'app',
    path: bytes(path),
    kind: 'file',
    origin: 'entrypoint',
    count: 1,
    firstSeen: NOON,
    lastSeen: NOON,
    podName: 'web-1',
    nodeName: 'node-1',
    ...more,
  };
}

const empty = emptyProposal('deploy-web', 'shop', { kind: 'Deployment', name: 'web' });
const many = (count: number, more: Partial<LearnedExec> = {}) =>
  Array.from({ length: count }, (_, index) => exec(`/bin/${index}`, more));

describe('learn', () => {
  it('adds new paths per container in order of arrival, each once', () => {
    const first = learn(empty, [exec('/b'), exec('/a'), exec('/b'), exec('/b', { containerName: 'side' })]);
    expect(first.added).toEqual([
      { containerName: 'app', executablePath: '/b' },
      { containerName: 'app', executablePath: '/a' },
      { containerName: 'side', executablePath: '/b' },
    ]);
    expect(first.refused).toEqual([]);
    const { rulesByContainer } = first.proposal.spec;
    expect(rulesByContainer.get('app')).toEqual({
      executables: { allowed: ['/b', '/a'], otherMountNamespaces: 'deny' },
    });
    expect(rulesByContainer.get('side')?.executables.allowed).toEqual(['/b']);
    expect(learn(first.proposal, [exec('/a')]).added).toEqual([]);
    expect(empty.spec.rulesByContainer.size).toBe(0);
  });

  it('merges what was seen of one path', () => {
    const { proposal } = learn(empty, [exec('/a', { count: 3, firstSeen: LATER, lastSeen: LATER })]);
    const again = exec('/a', { count: 2, origin: 'probe', podName: 'web-2', nodeName: 'node-2' });
    expect(learn(proposal, [again, again]).proposal.status?.observations).toEqual([
      {
        containerName: 'app',
        executablePath: '/a',
        count: 7,
        firstSeen: NOON,
        lastSeen: LATER,
        origins: ['entrypoint', 'probe'],
        pods: ['web-1', 'web-2'],
        nodes: ['node-1', 'node-2'],
      },
    ]);
  });

  it('remembers ten pods and ten nodes, and only what can be a name', () => {
    const pods = Array.from({ length: 15 }, (_, index) =>
      exec('/a', { podName: `w${index}`, nodeName: `n${index}` }),
    );
    const odd = exec('/a', { podName: 'x\ny', nodeName: 'y'.repeat(300) });
    const [observation] = learn(empty, [odd, ...pods]).proposal.status?.observations ?? [];
    expect(observation?.count).toBe(16);
    expect(observation?.pods).toEqual(pods.slice(0, 10).map(({ podName }) => podName));
    expect(observation?.nodes).toEqual(pods.slice(0, 10).map(({ nodeName }) => nodeName));
  });

  it('stops at 100 paths over all containers, says so once, and goes on counting', () => {
    const full = learn(empty, [...many(60), ...many(40, { containerName: 'side' })]);
    expect(full.added).toHaveLength(100);
    expect(full.proposal.status?.conditions).toEqual([]);
    const more = learn(full.proposal, [exec('/new', { lastSeen: LATER }), exec('/bin/1'), exec('/new')]);
    expect(more.added).toEqual([]);
    expect(more.refused.map(({ reason }) => reason)).toEqual(['full', 'full']);
    expect(more.proposal.spec).toEqual(full.proposal.spec);
    expect(more.proposal.status?.conditions).toMatchObject([
      { type: FULL_CONDITION, status: 'True', reason: 'PathLimitReached', lastTransitionTime: LATER },
    ]);
    expect(more.proposal.status?.observations[1]).toMatchObject({ executablePath: '/bin/1', count: 2 });
  });

  it.each<[string, Partial<LearnedExec>]>([
    ['/tmp/x', { kind: 'deleted' }],
    ['/memfd:x', { kind: 'memfd' }],
    ['/usr/bin/ls', { kind: 'foreignMount' }],
    ['/memfd:x', {}],
    ['/tmp/x (deleted)', {}],
    ['', {}],
    [`/${'a'.repeat(4095)}`, {}],
    ['/a', { containerName: 'Not a name' }],
  ])('never proposes %j of %j', (path, more) => {
    const one = exec(path, more);
    expect(learn(empty, [one])).toMatchObject({ added: [], refused: [{ exec: one, reason: 'unlistable' }] });
  });

  it('keeps what a user wrote into the proposal, beyond the cap too', () => {
    const allowed = Array.from({ length: 150 }, (_, index) => `/bin/${index}`);
    const written = parseWorkloadPolicyProposal({
      ...workloadPolicyProposalObject(empty),
      spec: { rulesByContainer: { app: { executables: { allowed, otherMountNamespaces: 'unchecked' } } } },
    });
    if (!written.ok) throw new Error(JSON.stringify(written.errors));
    const { proposal, added, refused } = learn(written.value, [...many(150), exec('/new')]);
    expect([added.length, refused.length]).toEqual([0, 1]);
    expect(proposal.spec).toEqual(written.value.spec);
    expect(parseWorkloadPolicyProposal(workloadPolicyProposalObject(proposal)).ok).toBe(true);
  });

  it('makes a valid proposal of any execs, and the same one in any split', () => {
    const any = fc.record({
      containerName: fc.constantFrom('app', 'side', 'constructor', '', 'Ä'),
      path: fc.oneof(fc.uint8Array({ maxLength: 8 }), fc.stringMatching(/^\/[ab]{1,2}$/).map(bytes)),
      kind: fc.constantFrom('file', 'deleted', 'memfd', 'foreignMount'),
      origin: fc.constantFrom('entrypoint', 'exec', 'probe', 'snapshot', 'unknown'),
      count: fc.integer({ min: 1, max: 1e6 }),
      firstSeen: fc.constant(NOON),
      lastSeen: fc.constantFrom(NOON, LATER),
      podName: fc.constantFrom('web-1', 'web-2', ''),
      nodeName: fc.constantFrom('node-1', '\u0000'),
    }) as fc.Arbitrary<LearnedExec>;
    fc.assert(
      fc.property(fc.array(any, { maxLength: 40 }), fc.nat(40), (execs, split) => {
        const { proposal, added, refused } = learn(empty, execs);
        const written = workloadPolicyProposalObject(proposal);
        const read = parseWorkloadPolicyProposal(written);
        expect(read.ok && workloadPolicyProposalObject(read.value)).toEqual(written);
        expect(added.length + refused.length).toBeLessThanOrEqual(execs.length);
        const counted = proposal.status?.observations.reduce((sum, { count }) => sum + count, 0) ?? 0;
        const given = execs.reduce((sum, { count }) => sum + count, 0);
        expect(counted + refused.reduce((sum, { exec: { count } }) => sum + count, 0)).toBe(given);
        expect(learn(learn(empty, execs.slice(0, split)).proposal, execs.slice(split)).proposal).toEqual(
          proposal,
        );
      }),
    );
  });
});

describe('addPaths', () => {
  const path = (containerName: string, text: string) => ({
    containerName,
    executablePath: text as ExecutablePath,
  });
  const none = empty.spec.rulesByContainer;

  it('adds what is new, behind what is there, and changes nothing that it was given', () => {
    const first = addPaths(none, [path('app', '/b'), path('app', '/a'), path('app', '/b')]);
    expect(first.added).toEqual([path('app', '/b'), path('app', '/a')]);
    expect(none.size).toBe(0);
    const second = addPaths(first.rules, [path('app', '/a'), path('app', '/c')]);
    expect(second.added).toEqual([path('app', '/c')]);
    expect(second.rules.get('app')?.executables.allowed).toEqual(['/b', '/a', '/c']);
    expect(first.rules.get('app')?.executables.allowed).toEqual(['/b', '/a']);
  });

  it('takes 100 paths and no more', () => {
    const paths = Array.from({ length: 130 }, (_, index) => path('app', `/bin/${index}`));
    const { added, refused } = addPaths(none, paths);
    expect([added, refused]).toEqual([paths.slice(0, 100), paths.slice(100)]);
  });

  it('takes long paths up to their bytes together, and a shorter one that still fits', () => {
    const long = (index: number) => path('app', `/${'\u00e4'.repeat(2_000)}${index}`);
    const paths = Array.from({ length: 20 }, (_, index) => long(index));
    const { added, refused, rules } = addPaths(none, [...paths, path('app', '/a')]);
    expect(added.length).toBe(Math.floor(MAX_LEARNED_BYTES / 4_002) + 1);
    expect(refused.length).toBe(21 - added.length);
    const texts = rules.get('app')?.executables.allowed ?? [];
    expect(bytes(texts.join('')).length).toBeLessThanOrEqual(MAX_LEARNED_BYTES);
    expect(texts.at(-1)).toBe('/a');
  });

  it('takes as many containers as a proposal can have', () => {
    const paths = Array.from({ length: 70 }, (_, index) => path(`c${index}`, '/a'));
    const { added, refused } = addPaths(none, paths);
    expect([added.length, refused.length]).toEqual([MAX_CONTAINERS, 70 - MAX_CONTAINERS]);
  });
});
