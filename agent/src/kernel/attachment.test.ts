import { describe, expect, test } from 'vitest';

import { chooseAttachment, type Attachment } from './attachment.ts';
import { EXAMPLE_FACTS, refused } from './node-facts-example.ts';

const withoutLsm = { ...EXAMPLE_FACTS, lsmList: 'lockdown,capability,apparmor' };

function chosen(...args: Parameters<typeof chooseAttachment>): Attachment {
  const attachment = chooseAttachment(...args);
  if ('problem' in attachment) throw new Error(attachment.problem);
  return attachment;
}

function problem(...args: Parameters<typeof chooseAttachment>): string {
  const attachment = chooseAttachment(...args);
  if (!('problem' in attachment)) throw new Error(`expected a problem, got ${attachment.kind}`);
  return attachment.problem;
}

describe('the LSM hook', () => {
  test('is taken wherever the BPF LSM is active, whatever the preemption', () => {
    for (const schedPreempt of ['(voluntary)', '(full)', '(lazy)', undefined])
      expect(chosen({ ...EXAMPLE_FACTS, schedPreempt })).toMatchObject({
        kind: 'lsm',
        programs: ['check_lsm'],
      });
    expect(chosen(EXAMPLE_FACTS).degraded).toBeUndefined();
  });

  test('is not taken when bpf is only part of a name in the list', () => {
    expect(chosen({ ...EXAMPLE_FACTS, lsmList: 'capability,bpfx,xbpf' }).kind).toBe('fmod_ret');
  });

  test('is not taken below 5.12', () => {
    const facts = { ...EXAMPLE_FACTS, release: '5.10.262', version: '#1 SMP Debian 5.10' };
    expect(chosen(facts)).toMatchObject({ kind: 'fmod_ret', programs: ['check_fmod_ret'] });
    expect(chosen(facts).reason).toContain('older than 5.12');
  });

  test('is not taken where its program does not load, and the reason says why', () => {
    const attachment = chosen({ ...EXAMPLE_FACTS, lsmProgram: refused('ENOTSUPP') });
    expect(attachment.kind).toBe('fmod_ret');
    expect(attachment.reason).toContain('(ENOTSUPP)');
  });

  test('forced, but not active: names the boot option with the modules that are active', () => {
    expect(problem(withoutLsm, 'lsm')).toContain('boot with lsm=lockdown,capability,apparmor,bpf.');
  });

  test('with a list that cannot be read: says so and how to mount securityfs', () => {
    expect(problem({ ...EXAMPLE_FACTS, lsmList: undefined }, 'lsm')).toContain('mount -t securityfs');
  });
});

describe('fmod_ret', () => {
  test.each(['(none) voluntary full', 'none (voluntary) full'])(
    'is enough without preemption: %s',
    (schedPreempt) => {
      const attachment = chosen({ ...withoutLsm, schedPreempt });
      expect(attachment).toMatchObject({ kind: 'fmod_ret', programs: ['check_fmod_ret'] });
      expect(attachment.degraded).toBeUndefined();
    },
  );

  test.each(['none voluntary (full)', 'full (lazy)'])(
    'needs its copies on %s, and is degraded',
    (schedPreempt) => {
      const attachment = chosen({ ...withoutLsm, schedPreempt });
      expect(attachment.programs).toEqual(['check_fmod_ret', 'check_copy', 'check_late_copy']);
      expect(attachment.degraded).toContain(
        'Boot with lsm=lockdown,capability,apparmor,bpf, or with preempt=voluntary.',
      );
    },
  );

  test('does not advise preempt=voluntary from 7.0 on, where it is gone', () => {
    const facts = { ...withoutLsm, release: '7.3.4', schedPreempt: 'full (lazy)' };
    expect(chosen(facts).degraded).not.toContain('preempt=voluntary');
  });

  test('takes an unknown preemption for a preempting one, and says how to make it known', () => {
    const attachment = chosen({ ...withoutLsm, schedPreempt: undefined });
    expect(attachment.programs).toHaveLength(3);
    expect(attachment.degraded).toContain('mount debugfs');
  });

  test('can be forced on a node with the BPF LSM', () => {
    expect(chosen(EXAMPLE_FACTS, 'fmod_ret')).toMatchObject({
      kind: 'fmod_ret',
      programs: ['check_fmod_ret'],
    });
  });

  test('is refused on a preempting kernel below 5.12', () => {
    const facts = { ...EXAMPLE_FACTS, release: '5.10.1', version: '#1 SMP PREEMPT', schedPreempt: undefined };
    expect(problem(facts)).toContain('Boot a kernel without preemption, or 5.12 or later.');
  });
});

describe('no hook at all', () => {
  const nothing = { ...withoutLsm, fmodRetProgram: refused('EPERM') };

  test('names both reasons and a remedy', () => {
    expect(problem(nothing)).toMatch(/With lsm: .* With fmod_ret: .*\(EPERM\).*CAP_BPF and CAP_PERFMON/);
  });

  test('field 69: on arm64 below 6.0 says that, for both hooks', () => {
    const arm = { ...nothing, architecture: 'arm64', release: '5.15.0' };
    expect(problem(arm)).toContain(
      'arm64 kernels can attach programs to functions from 6.0 on, and this is 5.15.0',
    );
    const withLsm = {
      ...EXAMPLE_FACTS,
      architecture: 'arm64',
      release: '5.15.0',
      lsmProgram: refused('ENOTSUPP'),
    };
    expect(problem(withLsm, 'lsm')).toContain('from 6.0 on');
  });

  test('for a missing file of ours blames no kernel', () => {
    expect(problem({ ...withoutLsm, fmodRetProgram: refused('ENOENT') })).toContain(
      'install the product again',
    );
  });

  test('field 68: where other tools hold every place at the hook says that, and blames no kernel', () => {
    const full = { ...EXAMPLE_FACTS, lsmProgram: refused('E2BIG'), fmodRetProgram: refused('E2BIG') };
    expect(problem(full)).toMatch(/With lsm: .*\(E2BIG\).*stop one of them.* With fmod_ret: .*\(E2BIG\)/);
    expect(problem(full)).not.toContain('stock kernel');
    expect(chosen({ ...full, fmodRetProgram: { works: true } }).reason).toContain('other tools have taken');
  });

  test('on a kernel without trampolines names the option', () => {
    expect(problem({ ...withoutLsm, fmodRetProgram: refused('ENOTSUPP') })).toContain(
      'CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS',
    );
  });
});
