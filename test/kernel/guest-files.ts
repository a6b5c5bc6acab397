/** Where a kernel guest finds what it tests. */
export const OBJECTS = {
  addon: '/run/payload/enforcer_native.node',
  enforcer: '/run/payload/enforcer.bpf.o',
  /** The same program built another time: other bytes, the same maps. */
  rebuilt: '/run/payload/rebuilt.bpf.o',
  /** The same program of the ABI 1000. */
  otherAbi: '/run/payload/other-abi.bpf.o',
  probe: '/run/payload/probe.bpf.o',
} as const;

/** The static programs of test/guest-programs. */
export const PROGRAMS = '/run/payload/programs';
