import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { isAtLeast, parseKernelVersion } from './kernel-version.ts';

describe('parseKernelVersion', () => {
  test.each([
    ['5.10.0-33-cloud-amd64', { major: 5, minor: 10 }],
    ['6.12', { major: 6, minor: 12 }],
    ['7.0-rc3', { major: 7, minor: 0 }],
    ['6.1.176+', { major: 6, minor: 1 }],
  ])('reads %s', (release, version) => {
    expect(parseKernelVersion(release)).toEqual(version);
  });

  test.each(['', '6', 'v6.1', '6.', '6.x', '6.12345', '66666.1', ' 6.1'])('refuses %j', (release) => {
    expect(parseKernelVersion(release)).toBeUndefined();
  });

  test('never throws', () => {
    fc.assert(fc.property(fc.string(), (release) => void parseKernelVersion(release)));
  });
});

test('isAtLeast orders by major, then minor', () => {
  const version = { major: 6, minor: 2 };
  expect([isAtLeast(version, 5, 12), isAtLeast(version, 6, 2), isAtLeast(version, 6, 1)]).toEqual([
    true,
    true,
    true,
  ]);
  expect([isAtLeast(version, 6, 3), isAtLeast(version, 6, 12), isAtLeast(version, 7, 0)]).toEqual([
    false,
    false,
    false,
  ]);
});
