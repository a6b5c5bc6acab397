import type { ReportedViolation } from '@runtime-enforcer/rpc/reported';
import { describe, expect, it } from 'vitest';
import type { PodPlaces } from './pod-places.ts';
import { GRACE_MS, journalEntry, violationBelief, type ViolationContext } from './violation-belief.ts';

const NOW = '2026-01-31T12:00:00.000Z';
const violation: ReportedViolation = {
  namespace: 'shop',
  policyName: 'web',
  podName: 'web-1',
  containerName: 'app',
  executablePath: '/bin/sh',
  nodeName: 'n1',
  action: 'protect',
  occurrences: 3,
  firstObservedTimestamp: NOW,
  lastObservedTimestamp: NOW,
};
const entry = (changed: Partial<ReportedViolation> = {}) => ({
  sequence: 1,
  value: { ...violation, ...changed },
  previousCount: 1,
  readAtMs: 0,
  settled: [],
});
const SOURCE = { nodeName: 'n1', incarnation: 'i' };

function context(
  answer: ReturnType<PodPlaces['isOn']>,
  changed: Partial<ViolationContext> & { readonly nodes?: readonly string[] } = {},
): ViolationContext {
  const { nodes = [], ...rest } = changed;
  const pods: PodPlaces = {
    start: () => undefined,
    stop: () => Promise.resolve(),
    synced: Promise.resolve(),
    isOn: () => answer,
    nodesOf: () => new Set(nodes),
  };
  const base = {
    pods,
    policy: 'shop/web',
    policyCreatedAt: 0,
    knownNodes: new Set<string>(),
    knownUntilMs: 0,
  };
  return { ...base, ...rest };
}

describe('violationBelief', () => {
  it.each<[string, Partial<ReportedViolation>, ViolationContext, string]>([
    ['the pod is there', {}, context('yes'), 'believed'],
    ['another node is named', { nodeName: 'n2' }, context('yes'), 'OtherNode'],
    ['the pod is elsewhere', {}, context('no', { nodes: ['n1'] }), 'OtherPod'],
    ['a pod is unknown as yet', {}, context('unknown'), 'later'],
    ['a pod stays unknown', {}, context('unknown', { knownUntilMs: GRACE_MS }), 'UnknownPod'],
    ['a pod is gone from a node that has others', {}, context('unknown', { nodes: ['n1'] }), 'believed'],
    [
      'a pod is gone from a node that had some',
      {},
      context('unknown', { knownNodes: new Set(['n1']) }),
      'believed',
    ],
    [
      'others had some',
      {},
      context('unknown', { knownNodes: new Set(['n2']), knownUntilMs: GRACE_MS }),
      'UnknownPod',
    ],
    [
      'the policy was made later',
      {},
      context('yes', { policyCreatedAt: Date.parse(NOW) + 61_000 }),
      'UnknownObject',
    ],
    [
      'the policy was made at about the same time',
      {},
      context('yes', { policyCreatedAt: Date.parse(NOW) + 59_000 }),
      'believed',
    ],
  ])('%s', (_, changed, given, expected) => {
    expect(violationBelief(entry(changed), SOURCE, given)).toBe(expected);
  });
});

describe('journalEntry', () => {
  it('leaves out whose status it is in', () => {
    const { violation: record, ...place } = journalEntry(entry({ overflow: true }), NOW);
    expect(place).toEqual({ sequence: 1, previousCount: 1 });
    const fields = Object.keys(violation).filter((field) => !['namespace', 'policyName'].includes(field));
    expect(Object.keys(record)).toEqual(fields);
    expect(violation).toMatchObject(record);
  });

  it('takes a clock that is ahead for ours', () => {
    const future = '2036-01-31T12:00:00.000Z';
    const ahead = journalEntry(entry({ firstObservedTimestamp: future, lastObservedTimestamp: future }), NOW);
    expect(ahead.violation).toMatchObject({ firstObservedTimestamp: NOW, lastObservedTimestamp: NOW });
    const half = journalEntry(entry({ lastObservedTimestamp: future }), NOW);
    expect(half.violation).toMatchObject({ firstObservedTimestamp: NOW, lastObservedTimestamp: NOW });
    const skewed = '2026-01-31T12:00:59.000Z';
    const near = journalEntry(entry({ lastObservedTimestamp: skewed }), NOW);
    expect(near.violation.lastObservedTimestamp).toBe(skewed);
  });
});
