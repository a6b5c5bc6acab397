import { describe, expect, it } from 'vitest';
import { earlier, isTimestamp, later } from './timestamp.ts';

describe('isTimestamp', () => {
  it.each([
    '2026-01-31T12:00:00Z',
    '2024-02-29T00:00:00.123456789Z',
    '2026-01-31T23:59:59+14:00',
    '0001-01-01T00:00:00Z',
  ])('accepts %s', (text) => {
    expect(isTimestamp(text)).toBe(true);
  });

  it.each([
    ...['', 'yesterday', '2026-01-31', '2026-01-31 12:00:00Z', '2026-01-31T12:00:00', '2026-02-30T12:00:00Z'],
    ...[
      '2025-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-01-31T24:00:00Z',
      '2026-01-31T12:60:00Z',
      '2026-1-1T1:1:1Z',
    ],
    ...['2026-01-31T12:00:00Z\n', '2026-01-31T12:00:00.Z', '2026-00-10T00:00:00Z', '99999-01-01T00:00:00Z'],
  ])('refuses %j', (text) => {
    expect(isTimestamp(text)).toBe(false);
  });
});

describe('earlier and later', () => {
  it('compare across time zones', () => {
    const [noon, one] = ['2026-01-31T12:00:00Z', '2026-01-31T12:30:00+01:00'];
    expect([earlier(noon, one), earlier(one, noon)]).toEqual([one, one]);
    expect([later(noon, one), later(one, noon)]).toEqual([noon, noon]);
  });
});
