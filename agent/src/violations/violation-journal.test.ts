import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ExecEvent, SeenEntry } from '../kernel/enforcer.ts';
import { fakeContainer, fakeEvent, fakeKey, fakeReporting, fakeSeen } from '../node/fake-kernel.ts';
import { createViolationJournal } from './violation-journal.ts';
import type { JournalLine } from './violation-line.ts';
import { MAX_RECORDS_PER_CONTAINER } from './violation-records.ts';

const CONTAINER = fakeContainer({ policy: 'shop/web' });

function journalWithLines(recovered: readonly JournalLine[] = []) {
  const reporting = fakeReporting();
  const written: JournalLine[] = [];
  let timeMs = 0;
  const journal = createViolationJournal({
    ...{ nodeName: 'node-1', write: (line) => void written.push(line), now: () => timeMs, ...reporting },
    monotonicMs: () => timeMs,
  });
  journal.recover(recovered);
  const counts = (total: bigint, seen: readonly SeenEntry[] = [], containers = [CONTAINER]): void => {
    for (const container of containers) {
      const isOfIt = ({ slot, generation }: SeenEntry): boolean =>
        slot === container.slot && generation === container.generation;
      journal.counts(container, total, seen.filter(isOfIt));
    }
    journal.counted(new Set(containers.map(({ containerId }) => containerId)));
  };
  /** The latest line of each kind, as the reader of the file sees it. */
  const latest = (): Map<string, number> =>
    new Map(
      written.map((line) => [
        line.event === 'policy_violation' ? `${line.action} ${line.executablePath}` : 'overflow',
        line.occurrences,
      ]),
    );
  return { journal, written, counts, latest, pass: (ms: number) => (timeMs += ms), ...reporting };
}

function event(key: string, path: string, more: Partial<ExecEvent> = {}): ExecEvent {
  return fakeEvent(CONTAINER, { key: fakeKey(key), path: new TextEncoder().encode(path), ...more });
}

describe('violation lines', () => {
  it('are written at once for the first occurrence, with everything that is known', () => {
    const { journal, written } = journalWithLines();
    journal.events([event('k', '/usr/bin/id')]);
    expect(written).toEqual([
      {
        ...{ event: 'policy_violation', time: '1970-01-01T00:00:00.000Z' },
        ...{
          namespace: 'shop',
          podName: 'web-1',
          containerName: 'main',
          containerId: 'c1',
          image: 'shop/web:1',
        },
        ...{ workloadKind: 'Pod', workloadName: 'web-1', nodeName: 'node-1', policyName: 'web' },
        ...{ executablePath: '/usr/bin/id', action: 'protect', reason: 'Unlisted', origin: 'exec' },
        ...{ pid: 200, uid: 0, parentName: 'runc', occurrences: 1, recordKey: 'k', recordCount: 1 },
        firstObservedTimestamp: '1970-01-01T00:00:01.000Z',
        lastObservedTimestamp: '1970-01-01T00:00:01.000Z',
      },
    ]);
  });

  it('show any bytes of a path in one reversible form, and what a file is that has no name', () => {
    const { journal, written } = journalWithLines();
    journal.events([
      event('1', 'x', { path: Uint8Array.of(0x2f, 0xff, 0x0a) }),
      event('2', '/bin/a', { reason: 'Unlinked' }),
      event('3', 'name', { reason: 'Memfd' }),
      event('4', '', { reason: 'Unresolved' }),
    ]);
    expect(written.map((line) => line.event === 'policy_violation' && line.executablePath)).toEqual([
      ...['/\\xff\\x0a', '/bin/a (deleted)', '/memfd:name', ''],
    ]);
  });

  it('are written again with the total when it has changed, and only then', () => {
    const { journal, written, counts } = journalWithLines();
    journal.events([event('k', '/usr/bin/id')]);
    counts(5n, [fakeSeen(CONTAINER, 'k', 5n, { lastMs: 9_000 })]);
    counts(5n, [fakeSeen(CONTAINER, 'k', 5n, { lastMs: 9_000 })]);
    expect(written.map(({ occurrences }) => occurrences)).toEqual([1, 5]);
    expect(written[1]).toMatchObject({ lastObservedTimestamp: '1970-01-01T00:00:09.000Z' });
  });

  it('add up over versions of the list, and after the kernel forgot its count', () => {
    const { journal, counts, latest } = journalWithLines();
    journal.events([event('k1', '/usr/bin/id')]);
    counts(3n, [fakeSeen(CONTAINER, 'k1', 3n)]);
    journal.events([event('k2', '/usr/bin/id')]);
    counts(5n, [fakeSeen(CONTAINER, 'k1', 3n), fakeSeen(CONTAINER, 'k2', 2n)]);
    expect(latest()).toEqual(new Map([['protect /usr/bin/id', 5]]));
    journal.events([event('k2', '/usr/bin/id')]);
    counts(8n, [fakeSeen(CONTAINER, 'k2', 3n)]);
    expect(latest()).toEqual(new Map([['protect /usr/bin/id', 8]]));
  });

  it('count right when the count is read before the record comes', () => {
    const { journal, counts, latest } = journalWithLines();
    counts(4n, [fakeSeen(CONTAINER, 'k', 4n)]);
    journal.events([event('k', '/usr/bin/id')]);
    counts(4n, [fakeSeen(CONTAINER, 'k', 4n)]);
    expect(latest()).toEqual(new Map([['protect /usr/bin/id', 4]]));
  });

  it('keep monitored and denied occurrences of one program apart', () => {
    const { journal, latest } = journalWithLines();
    journal.events([event('1', '/usr/bin/id', { mode: 'monitor' }), event('2', '/usr/bin/id')]);
    expect(latest()).toEqual(
      new Map([
        ['monitor /usr/bin/id', 1],
        ['protect /usr/bin/id', 1],
      ]),
    );
  });
});

describe("a container's share of lines", () => {
  it('is bounded, and what exceeds it is one line with the exact rest', () => {
    const { journal, written, counts, counters } = journalWithLines();
    const more = 250;
    const events = Array.from({ length: MAX_RECORDS_PER_CONTAINER + more }, (_, index) =>
      event(`k${index}`, `/tmp/tool-${index}`),
    );
    journal.events(events);
    counts(BigInt(events.length));
    const overflow = written.filter((line) => line.event === 'policy_violation_overflow');
    expect(written.length - overflow.length).toBe(MAX_RECORDS_PER_CONTAINER);
    expect(overflow.map(({ occurrences, containerId }) => [occurrences, containerId])).toEqual([
      [more, 'c1'],
    ]);
    expect(counters.value('violations_over_quota')).toBe(more);
    counts(BigInt(events.length));
    counts(BigInt(events.length + 7));
    expect(written.at(-1)).toMatchObject({ event: 'policy_violation_overflow', occurrences: more + 7 });
    expect(written.length).toBe(MAX_RECORDS_PER_CONTAINER + 2);
  });

  it('is its own: one container fills it and another is reported', () => {
    const { journal, written } = journalWithLines();
    const other = fakeContainer({ containerId: 'c2', slot: 2 });
    journal.events(Array.from({ length: 500 }, (_, index) => event(`k${index}`, `/tmp/${index}`)));
    journal.events([fakeEvent(other, { key: fakeKey('x') })]);
    expect(written.at(-1)).toMatchObject({ containerId: 'c2', occurrences: 1 });
  });

  it('counts what no record came for, once it has not come for a while', () => {
    const { counts, latest } = journalWithLines();
    counts(3n);
    expect(latest()).toEqual(new Map());
    counts(3n);
    expect(latest()).toEqual(new Map([['overflow', 3]]));
  });

  it('adds up to the total of the kernel, whatever comes in whatever order', () => {
    const steps = fc.array(
      fc.record({ path: fc.nat(150), repeats: fc.integer({ min: 1, max: 5 }), read: fc.boolean() }),
      { maxLength: 300 },
    );
    fc.assert(
      fc.property(steps, (execs) => {
        const { journal, counts, latest } = journalWithLines();
        const kernel = new Map<string, bigint>();
        let total = 0n;
        const seen = (): SeenEntry[] => [...kernel].map(([key, count]) => fakeSeen(CONTAINER, key, count));
        for (const { path, repeats, read } of execs) {
          const key = `k${path}`;
          const isNew = !kernel.has(key);
          kernel.set(key, (kernel.get(key) ?? 0n) + BigInt(repeats));
          total += BigInt(repeats);
          if (isNew) journal.events([event(key, `/bin/${path}`)]);
          if (read) counts(total, seen());
        }
        counts(total, seen());
        counts(total, seen());
        expect([...latest().values()].reduce((sum, count) => sum + count, 0)).toBe(Number(total));
      }),
      { seed: 7, numRuns: 200 },
    );
  });
});

describe('containers that come and go', () => {
  it('take a record of a container that has just ended, and none of an unknown one', () => {
    const { journal, written, counts, pass, counters } = journalWithLines();
    journal.events([event('1', '/usr/bin/id')]);
    counts(1n, [], []);
    journal.events([event('2', '/usr/bin/ls')]);
    expect(written).toHaveLength(2);
    journal.events([fakeEvent(undefined)]);
    expect(written).toHaveLength(2);
    expect(counters.value('events_without_container')).toBe(1);
    pass(60_000);
    counts(1n, [], []);
  });

  it('are continued from the lines of an agent before', () => {
    const first = journalWithLines();
    first.journal.events([event('k', '/usr/bin/id')]);
    first.counts(6n, [fakeSeen(CONTAINER, 'k', 6n)]);
    const second = journalWithLines(first.written.slice(-1));
    second.counts(6n, [fakeSeen(CONTAINER, 'k', 6n)]);
    expect(second.written).toEqual([]);
    second.counts(9n, [fakeSeen(CONTAINER, 'k', 9n)]);
    expect(second.latest()).toEqual(new Map([['protect /usr/bin/id', 9]]));
  });

  it('that came between two agents are the records that they are repeats of, and no overflow', () => {
    const first = journalWithLines();
    first.journal.events([event('k', '/usr/bin/id')]);
    first.counts(6n, [fakeSeen(CONTAINER, 'k', 6n)]);
    const second = journalWithLines(first.written.slice(-1));
    for (let reading = 0; reading < 3; reading++) second.counts(10n, [fakeSeen(CONTAINER, 'k', 10n)]);
    expect(second.latest()).toEqual(new Map([['protect /usr/bin/id', 10]]));
    // The kernel has forgotten its count meanwhile, and begun again.
    const third = journalWithLines(second.written.slice(-1));
    for (let reading = 0; reading < 3; reading++) third.counts(12n, [fakeSeen(CONTAINER, 'k', 2n)]);
    expect(third.latest()).toEqual(new Map([['protect /usr/bin/id', 12]]));
  });

  it('are continued with their overflow, too', () => {
    const first = journalWithLines();
    first.journal.events([event('k', '/usr/bin/id')]);
    for (let reading = 0; reading < 2; reading++) first.counts(5n, [fakeSeen(CONTAINER, 'k', 1n)]);
    expect(first.latest().get('overflow')).toBe(4);
    const second = journalWithLines(first.written);
    second.counts(5n, [fakeSeen(CONTAINER, 'k', 1n)]);
    second.counts(5n, [fakeSeen(CONTAINER, 'k', 1n)]);
    expect(second.written).toEqual([]);
    second.counts(7n, [fakeSeen(CONTAINER, 'k', 1n)]);
    expect(second.latest()).toEqual(new Map([['overflow', 6]]));
  });

  it('that are bound anew do not count twice', () => {
    const { journal, counts, latest } = journalWithLines();
    journal.events([event('k', '/usr/bin/id')]);
    counts(3n, [fakeSeen(CONTAINER, 'k', 3n)]);
    const again: BoundContainer = { ...CONTAINER, slot: 4, generation: 2 };
    journal.events([fakeEvent(again, { key: fakeKey('k2') })]);
    counts(2n, [fakeSeen(again, 'k2', 2n)], [again]);
    expect(latest()).toEqual(new Map([['protect /usr/bin/id', 5]]));
    counts(4n, [fakeSeen(again, 'k2', 2n)], [again]);
    counts(4n, [fakeSeen(again, 'k2', 2n)], [again]);
    expect(latest().get('overflow')).toBe(2);
  });
});

describe('programs found running', () => {
  it('have lines of their own that do not count as execs', () => {
    const { journal, counts, written, latest } = journalWithLines();
    const found = {
      executablePath: '/usr/bin/sleep',
      action: 'monitor',
      origin: 'snapshot',
      timeMs: 5,
    } as const;
    journal.found(CONTAINER, [found, found]);
    expect(written).toHaveLength(1);
    expect(written[0]).toMatchObject({ occurrences: 1, origin: 'snapshot' });
    counts(1n);
    counts(1n);
    expect(latest().get('overflow')).toBe(1);
  });
});
