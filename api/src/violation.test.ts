import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeViolation, mergeViolations, violationKey, type Violation } from './violation.ts';

const violation: Violation = {
  namespace: 'shop',
  policyName: 'deploy-web',
  podName: 'web-1',
  containerName: 'app',
  executablePath: '/bin/sh',
  nodeName: 'node-1',
  action: 'protect',
  occurrences: 1,
  firstObservedTimestamp: '2026-01-31T12:00:00Z',
  lastObservedTimestamp: '2026-01-31T12:00:00Z',
  reason: 'Unlisted',
  pid: 10,
  uid: 0,
  parentName: 'sh',
  origin: 'exec',
};
const at = (minute: number, more: Partial<Violation> = {}): Violation => {
  const time = `2026-01-31T12:${String(minute).padStart(2, '0')}:00Z`;
  return { ...violation, firstObservedTimestamp: time, lastObservedTimestamp: time, ...more };
};

describe('violationKey', () => {
  it.each<Partial<Violation>>([
    { namespace: 'other' },
    { podName: 'web-2' },
    { containerName: 'side' },
    { executablePath: '/bin/bash' },
    { action: 'monitor' },
  ])('differs by %j', (more) => {
    expect(violationKey({ ...violation, ...more })).not.toBe(violationKey(violation));
  });

  it.each<Partial<Violation>>([{ nodeName: 'node-2' }, { pid: 11 }, { reason: 'Memfd' }, { occurrences: 9 }])(
    'does not differ by %j',
    (more) => {
      expect(violationKey({ ...violation, ...more })).toBe(violationKey(violation));
    },
  );

  it('tells names apart that hold any separator', () => {
    const text = fc.string({ unit: fc.constantFrom('"', ',', '\\', '\0', '/', 'a'), maxLength: 4 });
    fc.assert(
      fc.property(text, text, text, text, (podName, containerName, otherPod, otherContainer) => {
        const equal = podName === otherPod && containerName === otherContainer;
        const other = { ...violation, podName: otherPod, containerName: otherContainer };
        expect(violationKey({ ...violation, podName, containerName }) === violationKey(other)).toBe(equal);
      }),
    );
  });
});

describe('mergeViolation', () => {
  it('adds occurrences, spans the times, and describes the latest', () => {
    const known = at(5, { occurrences: 3 });
    const latest = at(9, { occurrences: 4, pid: 99, nodeName: 'node-2', parentName: 'cron' });
    const merged = {
      ...latest,
      occurrences: 7,
      firstObservedTimestamp: known.firstObservedTimestamp,
    };
    expect(mergeViolation(known, latest)).toEqual(merged);
    expect(mergeViolation(latest, known)).toEqual(merged);
  });

  it('keeps the id of the known record', () => {
    expect(mergeViolation({ ...at(5), id: 7 }, at(6, { occurrences: 2 }))).toMatchObject({
      id: 7,
      occurrences: 3,
    });
  });

  it('compares times, not their texts', () => {
    const known = at(5, { lastObservedTimestamp: '2026-01-31T12:30:00Z' });
    const repeat = at(5, { lastObservedTimestamp: '2026-01-31T13:00:00+01:00', pid: 99 });
    expect(mergeViolation(known, repeat)).toMatchObject({
      lastObservedTimestamp: '2026-01-31T12:30:00Z',
      pid: 10,
    });
  });
});

describe('mergeViolations', () => {
  it('counts every occurrence once, in any order', () => {
    const any = fc
      .tuple(fc.nat(59), fc.constantFrom('web-1', 'web-2'), fc.integer({ min: 1, max: 1e9 }))
      .map(([minute, podName, occurrences]) => at(minute, { podName, occurrences }));
    fc.assert(
      fc.property(fc.array(any), (violations) => {
        const merged = mergeViolations(violations);
        const total = (list: readonly Violation[]) =>
          list.reduce((sum, { occurrences }) => sum + occurrences, 0);
        expect(total(merged)).toBe(total(violations));
        expect(new Set(merged.map(violationKey)).size).toBe(merged.length);
        expect(merged.length).toBe(new Set(violations.map(violationKey)).size);
        const times = (list: readonly Violation[]) =>
          list
            .map((each) => `${each.podName} ${each.firstObservedTimestamp} ${each.lastObservedTimestamp}`)
            .toSorted();
        expect(times(mergeViolations(violations.toReversed()))).toEqual(times(merged));
      }),
    );
  });
});
