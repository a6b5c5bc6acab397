import type { Attempt, NodeFacts } from './node-facts.ts';

/** For tests: what a current Debian node with everything in place says. */
export const EXAMPLE_FACTS: NodeFacts = {
  architecture: 'x64',
  release: '6.12.117-cloud-amd64',
  version: '#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1',
  kernelBtf: true,
  effectiveCapabilities: '000001ffffffffff',
  lockdown: '[none] integrity confidentiality',
  lsmList: 'lockdown,capability,landlock,yama,apparmor,bpf',
  ringBuffer: { works: true },
  largeKeys: { works: true },
  lsmProgram: { works: true },
  fmodRetProgram: { works: true },
  bpfFsMagic: 0xcafe4a11,
  cgroupMagic: 0x63677270,
  unifiedCgroupMagic: undefined,
  schedPreempt: 'none (voluntary) full',
  commandLine: 'root=/dev/vda1 quiet',
  kernelConfig: undefined,
};

/** For tests: an attempt that the kernel refused. */
export function refused(code: string): Attempt {
  return { works: false, code, message: `attach program 'probe': refused (${code})` };
}
