import { describe, expect, test } from 'vitest';

import { mayPreempt, preemptionOf } from './preemption.ts';

const DYNAMIC = '#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-08-01)';
const PLAIN = '#1 SMP Debian 5.10.262-1 (2026-08-01)';
const nothingElse = { schedPreempt: undefined, commandLine: undefined, kernelConfig: undefined };

describe('preemptionOf', () => {
  test.each([
    ['none (voluntary) full', 'voluntary'],
    ['(none) voluntary full', 'none'],
    ['none voluntary (full) lazy', 'full'],
    ['full (lazy)', 'lazy'],
  ])("believes the scheduler's file before all else: %s", (schedPreempt, expected) => {
    const facts = {
      version: DYNAMIC,
      schedPreempt,
      commandLine: 'preempt=none',
      kernelConfig: 'CONFIG_PREEMPT=y',
    };
    expect(preemptionOf(facts)).toBe(expected);
  });

  test.each([
    ['console=ttyS0 preempt=full', 'full'],
    ['preempt=none preempt=voluntary quiet', 'voluntary'],
    ['preempt=lazy', 'lazy'],
  ])('then the last boot option of a dynamic kernel: %s', (commandLine, expected) => {
    const facts = { ...nothingElse, version: DYNAMIC, commandLine, kernelConfig: 'CONFIG_PREEMPT_NONE=y' };
    expect(preemptionOf(facts)).toBe(expected);
  });

  test.each(['xpreempt=none', 'preempt=never', 'preempt=', 'preempt=none,full'])(
    'ignores the boot option %s',
    (commandLine) => {
      expect(preemptionOf({ ...nothingElse, version: DYNAMIC, commandLine })).toBe('unknown');
    },
  );

  test('ignores the boot option of a kernel that is not dynamic', () => {
    expect(preemptionOf({ ...nothingElse, version: PLAIN, commandLine: 'preempt=full' })).toBe('voluntary');
  });

  test.each([
    ['CONFIG_PREEMPT_NONE=y', 'none'],
    ['CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y', 'voluntary'],
    ['CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT=y', 'full'],
    ['CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_LAZY=y', 'lazy'],
  ])('then the configuration: %j', (kernelConfig, expected) => {
    expect(preemptionOf({ ...nothingElse, version: DYNAMIC, kernelConfig })).toBe(expected);
  });

  test('a version string with PREEMPT, or with PREEMPT_RT, is a preempting kernel', () => {
    expect(preemptionOf({ ...nothingElse, version: '#1 SMP PREEMPT Debian 5.10' })).toBe('full');
    const realTime = { ...nothingElse, version: '#1 SMP PREEMPT_RT', kernelConfig: 'CONFIG_PREEMPT_NONE=y' };
    expect(preemptionOf(realTime)).toBe('full');
  });

  test('a version string that says nothing known is unknown', () => {
    expect(preemptionOf({ ...nothingElse, version: '' })).toBe('unknown');
  });
});

test('only none and voluntary rule preemption out', () => {
  expect((['none', 'voluntary', 'full', 'lazy', 'unknown'] as const).map(mayPreempt)).toEqual([
    false,
    false,
    true,
    true,
    true,
  ]);
});
