import { expect, it } from 'vitest';
import { acknowledge, acknowledgementRequests } from './acknowledgement.ts';
import { ACKNOWLEDGE_ANNOTATION_PREFIX as PREFIX } from './keys.ts';
import { MAX_VIOLATION_RECORDS } from './limits.ts';
import type { ViolationRecord } from './violation.ts';

const NOW = '2026-01-31T12:00:00Z';
const record = (id: number): ViolationRecord => ({
  id,
  podName: 'web-1',
  containerName: 'app',
  executablePath: `/bin/${id}`,
  nodeName: 'n1',
  action: 'protect',
  occurrences: 1,
  firstObservedTimestamp: NOW,
  lastObservedTimestamp: NOW,
});
const request = (id: number, reason = 'known') => ({ annotation: `${PREFIX}${id}`, id, reason });

it('reads numbers, and nothing else that stands behind the prefix', () => {
  const annotations = {
    [`${PREFIX}7`]: 'a\u202Eb',
    [`${PREFIX}x`]: '',
    [PREFIX]: '',
    [`${PREFIX}-1`]: '',
    [`${PREFIX}1.5`]: '',
    'example/acknowledge-1': '',
  };
  expect(acknowledgementRequests(annotations)).toEqual([request(7, String.raw`a\u{202e}b`)]);
  expect(acknowledgementRequests(undefined)).toEqual([]);
  expect(acknowledgementRequests({ [`${PREFIX}1`]: 'x'.repeat(100_000) })[0]?.reason.length).toBe(1024);
});

it('moves a record with the reason and the time, newest first', () => {
  const before = { violation: record(1), reason: 'old', acknowledgedAt: NOW };
  const lists = { violations: [record(3), record(2)], acknowledgedViolations: [before] };
  const after = acknowledge(lists, [request(2, 'why')], NOW);
  const moved = { violation: record(2), reason: 'why', acknowledgedAt: NOW };
  expect(after).toEqual({
    violations: [record(3)],
    acknowledgedViolations: [moved, before],
    taken: [moved],
    unknown: [],
  });
});

it('tells what there is no record of, but not what was acknowledged before', () => {
  const before = { violation: record(1), reason: 'old', acknowledgedAt: NOW };
  const lists = { violations: [record(2)], acknowledgedViolations: [before] };
  expect(acknowledge(lists, [request(1), request(9)], NOW)).toEqual({
    ...lists,
    taken: [],
    unknown: [request(9)],
  });
});

it('remembers so many', () => {
  const acknowledgedViolations = Array.from({ length: MAX_VIOLATION_RECORDS }, (_, id) => ({
    violation: record(id),
    reason: '',
    acknowledgedAt: NOW,
  }));
  const after = acknowledge({ violations: [record(500)], acknowledgedViolations }, [request(500)], NOW);
  expect(after.acknowledgedViolations.length).toBe(MAX_VIOLATION_RECORDS);
  expect(after.acknowledgedViolations[0]?.violation.id).toBe(500);
});
