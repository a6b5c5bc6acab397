import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseWith } from './schema.ts';
import { nodeStatus, type NodeFacts, nodeVerdict, type PolicyFacts } from './node-status.ts';
import { NO_STATUS, policyStatus, type StatusInput } from './policy-status.ts';
import { workloadPolicyStatusObject } from './resource-object.ts';
import { workloadPolicyStatus } from './workload-policy-status.ts';

const NOW = '2026-01-31T12:00:00.000Z';
const LATER = '2026-01-31T12:05:00.000Z';
const WANTED = { mode: 'protect', digest: 'd', isNew: false } as const;
const NODE = { attached: true, override: 'none' };
const POLICY: PolicyFacts = { state: 'ready', mode: 'protect', message: '', digest: 'd' };
const reported = (policy: Partial<PolicyFacts> = {}, node: Partial<typeof NODE> = {}): NodeFacts => ({
  kind: 'reported',
  node: { ...NODE, ...node },
  policy: { ...POLICY, ...policy },
});

describe('nodeVerdict', () => {
  it.each<[string, NodeFacts, string, string]>([
    ['all is well', reported(), 'Ready', ''],
    ['no answer', { kind: 'silent', why: 'it is away' }, 'Missing', 'it is away'],
    ['not loaded', { kind: 'reported', node: NODE }, 'Missing', 'not loaded'],
    ['another mode', reported({ mode: 'monitor' }), 'Transitioning', 'mode monitor'],
    ['other rules', reported({ digest: 'e' }), 'Transitioning', 'other rules'],
    ['no digest is told', reported({ digest: '' }), 'Ready', ''],
    ['an error', reported({ state: 'error', message: 'full' }), 'Failed', 'full'],
    ['an error without a word', reported({ state: 'error' }), 'Failed', 'policy is in error state'],
    ['one that was deleted', reported({ state: 'retained' }), 'Transitioning', 'an earlier policy'],
    ['a newer agent', reported({ state: 'unknown' }), 'Missing', 'not known here'],
    ['not attached', reported({}, { attached: false }), 'Failed', 'not attached'],
    ['switched off', reported({}, { override: 'off' }), 'Failed', 'by hand'],
    ['held at monitor', reported({}, { override: 'monitor' }), 'Failed', 'nothing is denied'],
  ])('%s', (_, facts, code, message) => {
    expect(nodeVerdict(WANTED, facts)).toEqual({ code, message: expect.stringContaining(message) as string });
  });

  it('gives nodes a moment to hear of a new policy', () => {
    const facts: NodeFacts = { kind: 'reported', node: NODE };
    expect(nodeVerdict({ ...WANTED, isNew: true }, facts).code).toBe('Transitioning');
  });

  it('makes what an agent says fit for a status', () => {
    const { message } = nodeVerdict(WANTED, reported({ state: 'error', message: '\n\u202E'.repeat(5_000) }));
    expect(message.length).toBe(1024);
    expect(message).toMatch(/^[ -~]*…$/);
  });
});

const verdict = fc.record({
  nodeName: fc.nat(60).map((number) => `n${String(number).padStart(2, '0')}`),
  code: fc.constantFrom('Ready', 'Missing', 'Failed', 'Transitioning'),
  message: fc.constantFrom('', 'why'),
});
const verdicts = fc.uniqueArray(verdict, { selector: ({ nodeName }) => nodeName, maxLength: 60 });

const spec = {
  mode: 'protect',
  unlistedContainers: 'allow',
  binding: { autoBind: false },
  rulesByContainer: new Map(),
} as const;
const input = (changed: Partial<StatusInput> = {}): StatusInput => ({
  spec,
  generation: 3,
  before: NO_STATUS,
  verdicts: [],
  weaknesses: new Map(),
  batches: [],
  requests: [],
  now: NOW,
  ...changed,
});

describe('nodeStatus', () => {
  it('counts each node once, names at most 20, and is what the CRD takes', () => {
    fc.assert(
      fc.property(verdicts, verdicts, (first, second) => {
        const before = policyStatus(input({ verdicts: first })).status;
        const { status } = policyStatus(input({ verdicts: second, before, now: LATER }));
        expect(status.successfulNodes + status.failedNodes + status.transitioningNodes).toBe(second.length);
        expect(status.totalNodes).toBe(second.length);
        expect(parseWith(workloadPolicyStatus, workloadPolicyStatusObject(status)).ok).toBe(true);
        expect(status.nodesWithIssues.size).toBe(Math.min(status.failedNodes, 20));
        expect(status.nodesWithIssues.has('...')).toBe(status.failedNodes >= 20);
        expect(status.nodesTransitioning.length).toBe(Math.min(status.transitioningNodes, 20));
        for (const [nodeName, { code, since }] of status.nodesWithIssues) {
          const stayed = before.nodesWithIssues.get(nodeName)?.code === code;
          expect(since).toBe(stayed ? NOW : LATER);
        }
        const again = policyStatus(input({ verdicts: second, before: status, now: '2027-01-31T12:00:00Z' }));
        expect(again.status).toEqual(status);
      }),
    );
  });

  it('comes to the same where nodes that are ready are only counted', () => {
    fc.assert(
      fc.property(verdicts, (all) => {
        const others = all.filter(({ code }) => code !== 'Ready');
        const counted = { verdicts: others, readyNodes: all.length - others.length };
        expect(policyStatus(input(counted))).toEqual(policyStatus(input({ verdicts: all })));
      }),
    );
  });

  it.each([
    [[], 'Transitioning'],
    [['Ready'], 'Ready'],
    [['Ready', 'Transitioning'], 'Transitioning'],
    [['Ready', 'Transitioning', 'Missing'], 'Failed'],
    [['Failed'], 'Failed'],
  ] as const)('the phase of %j is %s', (codes, phase) => {
    const given = codes.map((code, index) => ({ nodeName: `n${index}`, code, message: '' }));
    expect(nodeStatus(given, undefined, NOW).phase).toBe(phase);
  });
});

describe('conditions', () => {
  const said = (changed: Partial<StatusInput>) =>
    policyStatus(input(changed)).status.conditions.map(({ type, status, reason }) => [type, status, reason]);
  const node = (code: 'Ready' | 'Failed' | 'Transitioning') => ({ nodeName: 'n1', code, message: '' });

  it.each<[string, Partial<StatusInput>, string[][]]>([
    [
      'nothing is ready where there is no node',
      {},
      [
        ['Ready', 'False', 'NoNodes'],
        ['Progressing', 'True', 'NoNodes'],
        ['Degraded', 'False', 'AsExpected'],
      ],
    ],
    [
      'a node fails',
      { verdicts: [node('Failed')] },
      [
        ['Ready', 'False', 'NodesFailed'],
        ['Progressing', 'False', 'Settled'],
        ['Degraded', 'True', 'NodesFailed'],
      ],
    ],
    [
      'a node changes',
      { verdicts: [node('Transitioning')] },
      [
        ['Ready', 'False', 'NodesTransitioning'],
        ['Progressing', 'True', 'NodesTransitioning'],
        ['Degraded', 'False', 'AsExpected'],
      ],
    ],
    [
      'all are ready, one less than it should be',
      { verdicts: [node('Ready')], weaknesses: new Map([['n1', 'copies']]) },
      [
        ['Ready', 'True', 'AllNodesReady'],
        ['Progressing', 'False', 'Settled'],
        ['Degraded', 'True', 'NodesWeakened'],
      ],
    ],
  ])('%s', (_, changed, expected) => {
    expect(said(changed)).toEqual(expected);
  });
});

describe('policyStatus', () => {
  const violation = {
    podName: 'web-1',
    containerName: 'app',
    executablePath: '/bin/sh',
    nodeName: 'n1',
    action: 'protect',
    occurrences: 3,
    firstObservedTimestamp: NOW,
    lastObservedTimestamp: NOW,
    reason: 'Unlisted',
  } as const;
  const batches = [
    { nodeName: 'n1', incarnation: 'i', entries: [{ sequence: 5, violation, previousCount: 0 }] },
  ];
  const appSpec = { ...spec, unlistedContainers: 'deny' } as const;

  it('counts what is allowed by now, and has no record of it', () => {
    const { status, added } = policyStatus(input({ batches }));
    expect(status).toMatchObject({ violationCount: 3, activeViolationCount: 0, violations: [] });
    expect(status.mergedFrom).toEqual([{ nodeName: 'n1', incarnation: 'i', sequence: 5 }]);
    expect(added).toEqual([]);
  });

  it('records, acknowledges, and then begins a new record', () => {
    const first = policyStatus(input({ spec: appSpec, batches }));
    expect(first.added).toEqual([{ ...violation, id: 0 }]);
    const request = { annotation: 'a', id: 0, reason: 'known' };
    const second = policyStatus(input({ spec: appSpec, before: first.status, batches, requests: [request] }));
    expect(second.status).toMatchObject({ violationCount: 3, activeViolationCount: 0 });
    expect(second.acknowledged.map(({ violation: { id } }) => id)).toEqual([0]);
    const entries = [{ sequence: 6, violation: { ...violation, occurrences: 4 }, previousCount: 3 }];
    const third = policyStatus(
      input({
        spec: appSpec,
        before: second.status,
        batches: [{ nodeName: 'n1', incarnation: 'i', entries }],
      }),
    );
    expect(third.status.violations).toMatchObject([{ id: 3, occurrences: 1 }]);
  });
});
