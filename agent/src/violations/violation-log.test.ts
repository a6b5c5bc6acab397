import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ExecEvent, SeenEntry } from '../kernel/enforcer.ts';
import { fakeContainer, fakeEvent, fakeKey, fakeReporting, fakeSeen } from '../node/fake-kernel.ts';
import { createCumulativeLog, type KeptLog } from './cumulative-log.ts';
import { openLogJournal } from './log-journal.ts';
import { asNodeViolation, type NodeViolation } from './node-violation.ts';
import { violationEvent } from './violation-export.ts';
import { createViolationJournal } from './violation-journal.ts';
import { createViolationLog } from './violation-log.ts';
import { MAX_RECORDS_PER_CONTAINER } from './violation-records.ts';

const CONTAINER = fakeContainer({ policy: 'shop/web' });

function event(key: string, path: string, more: Partial<ExecEvent> = {}): ExecEvent {
  return fakeEvent(CONTAINER, { key: fakeKey(key), path: new TextEncoder().encode(path), ...more });
}

/** The violations of a node, from the kernel's records to its readers. */
function node(log: KeptLog<NodeViolation>) {
  let timeMs = Date.parse('2026-01-01T00:00:00Z');
  const told: { path: string; occurrences: number; overflow: boolean }[] = [];
  const violations = createViolationLog({
    log,
    onChange: ({ executablePath, overflow = false }, occurrences) =>
      void told.push({ path: executablePath, occurrences, overflow }),
  });
  const journal = createViolationJournal({
    ...{ nodeName: 'node-1', now: () => timeMs, monotonicMs: () => timeMs, ...fakeReporting() },
    write: (line) => violations.write(line),
    onEnded: (containerId) => violations.ended(containerId),
  });
  journal.recover(violations.recovered());
  const read = (total: bigint, seen: readonly SeenEntry[] = []): void => {
    journal.counts(CONTAINER, total, seen);
    journal.counted(new Set([CONTAINER.containerId]));
  };
  const leave = (): void => {
    journal.counted(new Set());
    timeMs += 20_000;
    journal.counted(new Set());
  };
  return { journal, violations, told, read, leave };
}

const inMemory = (): KeptLog<NodeViolation> => createCumulativeLog<NodeViolation>({ incarnation: 'test' });

function states(log: KeptLog<NodeViolation>): [string, number][] {
  return log
    .changedSince(0, 1_000)
    .entries.map(({ value }) => [
      value.overflow === true ? 'overflow' : value.executablePath,
      value.occurrences,
    ]);
}

describe('violations of a node', () => {
  it('are cumulative for readers, and told to others as what came since', () => {
    const log = inMemory();
    const { journal, told, read } = node(log);
    journal.events([event('a', '/bin/a'), event('b', '/bin/b')]);
    read(8n, [fakeSeen(CONTAINER, fakeKey('a'), 7n), fakeSeen(CONTAINER, fakeKey('b'), 1n)]);
    expect(states(log)).toEqual([
      ['/bin/b', 1],
      ['/bin/a', 7],
    ]);
    expect(told).toMatchObject([
      { path: '/bin/a', occurrences: 1 },
      { path: '/bin/b', occurrences: 1 },
      { path: '/bin/a', occurrences: 6 },
    ]);
  });

  it('beyond the share of their container are counted in one entry', () => {
    const log = inMemory();
    const { journal, read, told } = node(log);
    const kinds = MAX_RECORDS_PER_CONTAINER + 23;
    journal.events(Array.from({ length: kinds }, (_, index) => event(`k${index}`, `/bin/${index}`)));
    read(BigInt(kinds));
    expect(states(log).at(-1)).toEqual(['overflow', 23]);
    expect(states(log)).toHaveLength(MAX_RECORDS_PER_CONTAINER + 1);
    expect(told.at(-1)).toEqual({ path: '', occurrences: 23, overflow: true });
    read(BigInt(kinds + 2));
    expect(told.at(-1)).toMatchObject({ occurrences: 2, overflow: true });
  });

  it('of a container that left are forgotten once they were acknowledged', () => {
    const log = inMemory();
    const { journal, leave } = node(log);
    journal.events([event('a', '/bin/a')]);
    leave();
    expect(states(log)).toEqual([['/bin/a', 1]]);
    log.acknowledge(log.sequence);
    expect(log.size.keys).toBe(0);
  });
});

describe('the next agent', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'violation-log-'));
  });
  afterEach(async () => rm(directory, { recursive: true }));
  const open = async () =>
    openLogJournal<NodeViolation>({
      ...{ directory, name: 'violations', asValue: asNodeViolation },
      ...fakeReporting(),
    });

  it('goes on counting where the one before stopped, and tells nothing twice', async () => {
    const first = await open();
    const before = node(first.log);
    before.journal.events([event('a', '/bin/a'), event('b', '/bin/b', { reason: 'Memfd', uid: 7 })]);
    before.read(5n, [fakeSeen(CONTAINER, fakeKey('a'), 4n)]);
    await first.stop(1_000);

    const second = await open();
    const after = node(second.log);
    // The kernel still has its counts; the first reading finds that two more have come meanwhile.
    after.read(5n, [fakeSeen(CONTAINER, fakeKey('a'), 4n)]);
    expect(after.told).toEqual([]);
    after.read(7n, [fakeSeen(CONTAINER, fakeKey('a'), 6n)]);
    expect(after.told).toEqual([{ path: '/bin/a', occurrences: 2, overflow: false }]);
    expect([...second.log.values()].map(([, { occurrences }]) => occurrences).sort()).toEqual([1, 6]);
    expect(second.recovered.broken).toBe(0);
    await second.stop(1_000);
  });

  it('lets go of containers that ended while no agent ran', async () => {
    const first = await open();
    node(first.log).journal.events([event('a', '/bin/a')]);
    await first.flush();
    first.log.acknowledge(first.log.changedSince(0, 10).cursor);
    await first.stop(1_000);
    const second = await open();
    const { journal } = node(second.log);
    expect(second.log.size.keys).toBe(1);
    journal.counted(new Set(['another']));
    expect(second.log.size.keys).toBe(0);
    await second.stop(1_000);
  });
});

it.each([
  ...[null, 5, 'text', [], {}],
  { ...violation(), occurrences: -1 },
  { ...violation(), action: 'allow' },
  { ...violation(), reason: 'Because' },
  { ...violation(), containerId: undefined },
  { ...violation(), lastObservedTimestamp: 'soon' },
  { ...violation(), uid: 1.5 },
])('takes no %j for a violation', (value) => expect(asNodeViolation(value)).toBeUndefined());

it('is sent to a collector by the names of the field', () => {
  expect(violationEvent(violation(), 3)).toEqual({
    name: 'policy_violation',
    severity: 'WARN',
    attributes: {
      ...{ 'policy.name': 'web', 'k8s.namespace.name': 'shop', 'k8s.pod.name': 'web-1' },
      ...{ 'container.name': 'main', 'proc.exepath': '/bin/a', 'node.name': 'node-1', action: 'protect' },
      ...{ 'container.id': 'c1', 'user.id': 0, count: 3 },
    },
  });
  const whole = violationEvent(
    {
      ...violation(),
      ...{ workloadName: 'web', workloadKind: 'Deployment', pid: 12, parentName: 'sh', image: 'shop/web:1' },
      ...{ reason: 'Unlisted', origin: 'exec', overflow: true },
    },
    1,
  );
  expect(whole.attributes).toMatchObject({
    ...{
      'workload.name': 'web',
      'workload.kind': 'Deployment',
      'process.pid': 12,
      'process.parent.name': 'sh',
    },
    ...{ 'container.image.name': 'shop/web:1', reason: 'Unlisted', origin: 'exec', overflow: true },
  });
});

function violation(): NodeViolation {
  const observed = '2026-01-01T00:00:00.000Z';
  return {
    ...{ namespace: 'shop', podName: 'web-1', containerName: 'main', containerId: 'c1', nodeName: 'node-1' },
    ...{ policyName: 'web', executablePath: '/bin/a', action: 'protect', occurrences: 1, uid: 0 },
    ...{ firstObservedTimestamp: observed, lastObservedTimestamp: observed },
  };
}
