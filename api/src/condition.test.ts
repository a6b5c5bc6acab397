import { describe, expect, it } from 'vitest';
import { setCondition, type Condition } from './condition.ts';

const ready: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'AllNodesReady',
  message: '3 of 3 nodes',
  lastTransitionTime: '2026-01-31T12:00:00Z',
};
const LATER = '2026-01-31T13:00:00Z';

describe('setCondition', () => {
  it('adds a condition that was not there', () => {
    const full = { type: 'Full', status: 'False', reason: 'RoomLeft', message: '' } as const;
    expect(setCondition([ready], full, LATER)).toEqual([ready, { ...full, lastTransitionTime: LATER }]);
  });

  it('moves the time only with the status', () => {
    expect(setCondition([ready], { ...ready, message: '4 of 4 nodes' }, LATER)).toEqual([
      { ...ready, message: '4 of 4 nodes' },
    ]);
    expect(setCondition([ready], { ...ready, status: 'False' }, LATER)).toEqual([
      { ...ready, status: 'False', lastTransitionTime: LATER },
    ]);
  });

  it('takes no time from the caller’s condition', () => {
    expect(
      setCondition([], { ...ready, lastTransitionTime: 'x' } as Condition, LATER)[0]?.lastTransitionTime,
    ).toBe(LATER);
  });
});
