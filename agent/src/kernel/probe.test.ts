import { describe, expect, test } from 'vitest';

import { EXAMPLE_FACTS, refused } from './node-facts-example.ts';
import type { NodeFacts } from './node-facts.ts';
import { cgroupLayoutOf, judgeNode, type Finding } from './probe.ts';

function finding(name: Finding['name'], change: Partial<NodeFacts>): Finding {
  const found = judgeNode({ ...EXAMPLE_FACTS, ...change }).findings.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no finding '${name}'`);
  return found;
}

test('a good node has nothing but good findings', () => {
  const report = judgeNode(EXAMPLE_FACTS);
  expect(report.findings.map(({ state }) => state)).toEqual(Array(8).fill('ok'));
  expect(report).toMatchObject({ usable: true, preemption: 'voluntary', cgroups: 'v2', largeKeys: true });
});

describe('each missing thing makes the node unusable and names its remedy', () => {
  test.each<[Finding['name'], Partial<NodeFacts>, string]>([
    [
      'kernel',
      { release: '5.4.0-42-generic' },
      'Kernel 5.4.0-42-generic is too old; update to Linux 5.10 or later.',
    ],
    ['kernel', { release: 'unknown' }, "release 'unknown' is not a version"],
    ['btf', { kernelBtf: false }, 'CONFIG_DEBUG_INFO_BTF=y'],
    ['permission', { effectiveCapabilities: '00000000a80425fb' }, 'securityContext.capabilities.add'],
    ['permission', { effectiveCapabilities: undefined }, 'may not use BPF'],
    ['permission', { effectiveCapabilities: '0000008000000000' }, 'CAP_BPF and CAP_PERFMON'],
    ['lockdown', { lockdown: 'none integrity [confidentiality]' }, 'lockdown=integrity'],
    ['ring-buffer', { ringBuffer: refused('EINVAL') }, 'Update to Linux 5.10 or later.'],
    ['ring-buffer', { ringBuffer: refused('EPERM') }, 'RLIMIT_MEMLOCK'],
    ['hook', { lsmList: '', fmodRetProgram: refused('EPERM') }, 'No hook can deny an exec here.'],
    ['bpffs', { bpfFsMagic: 0x62656572 }, 'mount -t bpf bpf /sys/fs/bpf'],
    ['bpffs', { bpfFsMagic: undefined }, 'mount -t bpf bpf /sys/fs/bpf'],
  ])('%s', (name, change, words) => {
    expect(finding(name, change)).toMatchObject({ state: 'missing' });
    expect(finding(name, change).sentence).toContain(words);
    expect(judgeNode({ ...EXAMPLE_FACTS, ...change }).usable).toBe(false);
  });
});

describe('limits leave the node usable', () => {
  test.each<[Finding['name'], Partial<NodeFacts>, string]>([
    ['key-size', { largeKeys: refused('E2BIG') }, 'paths of more than 508 bytes'],
    [
      'hook',
      { lsmList: 'capability', schedPreempt: 'none voluntary (full)' },
      'Boot with lsm=capability,bpf',
    ],
  ])('%s', (name, change, words) => {
    expect(finding(name, change)).toMatchObject({ state: 'limited' });
    expect(finding(name, change).sentence).toContain(words);
    expect(judgeNode({ ...EXAMPLE_FACTS, ...change }).usable).toBe(true);
  });
});

test('CAP_BPF with CAP_PERFMON is enough', () => {
  expect(finding('permission', { effectiveCapabilities: '000000c000000000' }).state).toBe('ok');
});

test('field 71: lockdown=confidentiality is named as what it is, whatever errors come of it', () => {
  const locked: Partial<NodeFacts> = {
    lockdown: 'none integrity [confidentiality]',
    ringBuffer: refused('EPERM'),
    lsmProgram: refused('EPERM'),
    fmodRetProgram: refused('EPERM'),
  };
  expect(finding('lockdown', locked).sentence).toBe(
    "Kernel lockdown is at 'confidentiality', which forbids BPF programs to read kernel memory. Boot with " +
      'lockdown=integrity or without lockdown.',
  );
  expect(judgeNode({ ...EXAMPLE_FACTS, ...locked }).usable).toBe(false);
});

test('lockdown integrity, and a kernel without lockdown, are fine', () => {
  expect(finding('lockdown', { lockdown: 'none [integrity] confidentiality' }).state).toBe('ok');
  expect(finding('lockdown', { lockdown: undefined }).state).toBe('ok');
});

test('the cgroup layout follows from the two file systems', () => {
  const [cgroup2, tmpfs] = [0x63677270, 0x01021994];
  expect(cgroupLayoutOf({ cgroupMagic: cgroup2, unifiedCgroupMagic: undefined })).toBe('v2');
  expect(cgroupLayoutOf({ cgroupMagic: tmpfs, unifiedCgroupMagic: cgroup2 })).toBe('hybrid');
  expect(cgroupLayoutOf({ cgroupMagic: tmpfs, unifiedCgroupMagic: undefined })).toBe('v1');
  expect(cgroupLayoutOf({ cgroupMagic: undefined, unifiedCgroupMagic: undefined })).toBe('v1');
});
