import { readdirSync } from 'node:fs';
import { release } from 'node:os';

import { expect, test } from 'vitest';

import { loadNative } from './native.ts';
import { mountBpfFs, PROBE_OBJECT } from './native-test-objects.ts';
import { gatherNodeFacts, isBpfFs } from './node-facts.ts';

const native = loadNative();

test('gathers what this node says, and leaves nothing open', () => {
  gatherNodeFacts(native, { objectPath: PROBE_OBJECT });
  const before = readdirSync('/proc/self/fd').length;
  const facts = gatherNodeFacts(native, { objectPath: PROBE_OBJECT });
  expect(readdirSync('/proc/self/fd').length).toBe(before);
  expect(facts).toMatchObject({ release: release(), kernelBtf: true, ringBuffer: { works: true } });
  expect(facts.effectiveCapabilities).toMatch(/^[0-9a-f]{16}$/);
  expect(facts.cgroupMagic).toBeGreaterThan(0);
  expect(facts.commandLine).not.toBe('');
});

test('looks at the given places', () => {
  const bpfFs = mountBpfFs();
  try {
    const facts = gatherNodeFacts(native, {
      objectPath: PROBE_OBJECT,
      bpfFs: bpfFs.path,
      cgroupFs: '/nowhere',
    });
    expect(isBpfFs(facts.bpfFsMagic)).toBe(true);
    expect([facts.cgroupMagic, facts.unifiedCgroupMagic]).toEqual([undefined, undefined]);
  } finally {
    bpfFs.remove();
  }
});

test('a probe that cannot be read is a refused attempt that names the file', () => {
  const { lsmProgram, fmodRetProgram } = gatherNodeFacts(native, { objectPath: '/nowhere/probe.bpf.o' });
  for (const attempt of [lsmProgram, fmodRetProgram])
    expect(attempt).toMatchObject({
      works: false,
      code: 'ENOENT',
      message: expect.stringContaining('/nowhere/probe.bpf.o') as string,
    });
});
