import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_VIOLATION_RECORD_BYTES, MAX_VIOLATION_RECORDS } from './limits.ts';
import type { ViolationRecord } from './violation.ts';
import { boundedRecords, isAllowedNow, type JournalEntry, mergeJournals } from './violation-status.ts';
import { parseWorkloadPolicy } from './workload-policy.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 0, 31, 12) + second * 1_000).toISOString();
const record = (changed: Partial<ViolationRecord> = {}): ViolationRecord => ({ id: 0, ...told(changed) });
/** As an agent tells it. */
const told = <T extends Partial<ViolationRecord>>(changed: T): Omit<ViolationRecord, 'id'> & T => ({
  podName: 'web-1',
  containerName: 'app',
  executablePath: '/bin/sh',
  nodeName: 'n1',
  action: 'protect',
  occurrences: 1,
  firstObservedTimestamp: at(0),
  lastObservedTimestamp: at(0),
  ...changed,
});
const NOTHING = { violations: [], violationCount: 0, mergedFrom: [] };

/** What an agent's journal gives a reader: cumulative entries, each naming what the one before counted. */
const journal = fc
  .array(fc.record({ pod: fc.constantFrom('p1', 'p2', 'p3'), times: fc.integer({ min: 1, max: 9 }) }), {
    maxLength: 12,
  })
  .map((steps) => {
    const totals = new Map<string, number>();
    return steps.map(({ pod, times }, index): JournalEntry => {
      const previousCount = totals.get(pod) ?? 0;
      totals.set(pod, previousCount + times);
      const violation = told({
        podName: pod,
        occurrences: previousCount + times,
        firstObservedTimestamp: at(1),
        lastObservedTimestamp: at(index + 1),
      });
      return { sequence: index + 1, violation, previousCount };
    });
  });

describe('mergeJournals', () => {
  it('counts every entry once, in whatever overlapping pieces it comes', () => {
    const pieces = fc.array(fc.tuple(fc.nat(12), fc.nat(12), fc.nat(1)), { maxLength: 20 });
    fc.assert(
      fc.property(journal, journal, pieces, (one, two, cuts) => {
        const journals = [one, two];
        const read = [0, 0];
        let status: Parameters<typeof mergeJournals>[0] = NOTHING;
        const take = (which: number, from: number, to: number): void => {
          const entries = (journals[which] ?? []).slice(Math.min(from, read[which] ?? 0), to);
          read[which] = Math.max(read[which] ?? 0, to);
          status = mergeJournals(status, [{ nodeName: 'n1', incarnation: `i${which}`, entries }]);
        };
        for (const [from, to, which] of cuts) take(which, from, to);
        for (const which of [0, 1]) take(which, 0, 99);
        const total = [one, two].map((entries) =>
          entries.reduce(
            (sum, { violation, previousCount }) => sum + violation.occurrences - previousCount,
            0,
          ),
        );
        const expected = (total[0] ?? 0) + (total[1] ?? 0);
        expect(status.violationCount).toBe(expected);
        expect(status.violations.reduce((sum, { occurrences }) => sum + occurrences, 0)).toBe(expected);
        const ids = status.violations.map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
        for (const { firstObservedTimestamp } of status.violations)
          expect(firstObservedTimestamp).toBe(at(1));
      }),
    );
  });

  it('never gives an id again, also where the count was lowered by hand', () => {
    const before = { violations: [record({ id: 7 })], violationCount: 0, mergedFrom: [] };
    const violation = told({ podName: 'p2' });
    const entries = [{ sequence: 1, violation, previousCount: 0 }];
    const { violations, added } = mergeJournals(before, [{ nodeName: 'n1', incarnation: 'i', entries }]);
    expect(violations.map(({ id }) => id)).toEqual([7, 8]);
    expect(added.map(({ id }) => id)).toEqual([8]);
  });

  it('a record that is gone begins anew with what came since', () => {
    const violation = told({ occurrences: 9, lastObservedTimestamp: at(60) });
    const entries = [{ sequence: 4, violation, previousCount: 7 }];
    const { violations } = mergeJournals(NOTHING, [{ nodeName: 'n1', incarnation: 'i', entries }]);
    expect(violations).toEqual([
      record({ occurrences: 2, firstObservedTimestamp: at(60), lastObservedTimestamp: at(60) }),
    ]);
  });

  it('counts that no node can have stop where JavaScript still counts', () => {
    const entries = [1, 2, 3].map((sequence): JournalEntry => {
      const violation = told({
        podName: `p${sequence}`,
        occurrences: Number.MAX_SAFE_INTEGER,
      });
      return { sequence, violation, previousCount: 0 };
    });
    const merged = mergeJournals(NOTHING, [{ nodeName: 'n1', incarnation: 'i', entries }]);
    expect(Number.isSafeInteger(merged.violationCount)).toBe(true);
    const ids = merged.violations.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    for (const id of ids) expect(Number.isSafeInteger(id)).toBe(true);
  });
});

describe('boundedRecords', () => {
  it('keeps a record of everything else in a burst of replicas', () => {
    const burst = Array.from({ length: 5_000 }, (_, index) =>
      record({ id: index, podName: `web-${index}`, lastObservedTimestamp: at(1_000 + index) }),
    );
    const others = Array.from({ length: 40 }, (_, index) =>
      record({ id: 10_000 + index, executablePath: `/bin/${index}`, lastObservedTimestamp: at(index) }),
    );
    const kept = boundedRecords([...others, ...burst]);
    expect(kept.length).toBe(MAX_VIOLATION_RECORDS);
    for (const other of others) expect(kept).toContain(other);
    expect(kept.filter(({ executablePath }) => executablePath === '/bin/sh')).toEqual(
      burst.slice(-60).reverse(),
    );
    expect(kept[0]?.podName).toBe('web-4999');
  });

  it('holds records of the longest paths to what an object has room for', () => {
    const records = Array.from({ length: 100 }, (_, id) =>
      record({ id, executablePath: `/${'é'.repeat(8_000)}${id}`, lastObservedTimestamp: at(id) }),
    );
    const kept = boundedRecords(records);
    expect(kept.length).toBeGreaterThan(5);
    expect(Buffer.byteLength(JSON.stringify(kept))).toBeLessThanOrEqual(MAX_VIOLATION_RECORD_BYTES + 2);
    expect(kept[0]?.id).toBe(99);
  });
});

describe('isAllowedNow', () => {
  const parsed = parseWorkloadPolicy({
    apiVersion: 'runtimeenforcer.kubewarden.io/v1alpha1',
    kind: 'WorkloadPolicy',
    metadata: { name: 'web' },
    spec: {
      mode: 'protect',
      unlistedContainers: 'deny',
      rulesByContainer: { app: { executables: { allowed: ['/bin/sh'] } } },
    },
  });
  if (!parsed.ok) throw new Error('the example is wrong');
  const { spec } = parsed.value;

  it.each<[Partial<ViolationRecord>, boolean]>([
    [{}, true],
    [{ reason: 'Unlisted' }, true],
    [{ reason: 'UnlistedContainer' }, true],
    [{ reason: 'OtherMountNamespace' }, false],
    [{ reason: 'Unlinked' }, false],
    [{ executablePath: '/bin/bash' }, false],
    [{ containerName: 'side' }, false],
  ])('%j: %s', (changed, expected) => {
    expect(isAllowedNow(record(changed), spec)).toBe(expected);
  });

  it('lets go of unlisted containers where they may start anything', () => {
    const side = record({ containerName: 'side', reason: 'UnlistedContainer' });
    expect(isAllowedNow(side, { ...spec, unlistedContainers: 'allow' })).toBe(true);
  });
});
