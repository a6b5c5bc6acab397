import { fileURLToPath } from 'node:url';

/** What the agent needs beside its own code. */
export interface BuiltFiles {
  /** The addon over libbpf. */
  readonly addon: string;
  /** The kernel program, and the small one that tries what a kernel has. */
  readonly enforcerObject: string;
  readonly probeObject: string;
  /** The program of the thread that reads large policy files. */
  readonly policyParserWorker: URL;
}

/**
 * Where they are: beside the bundled agent, or where the source tree's makefiles put them. RUNTIME_ENFORCER_NATIVE
 * names another addon.
 */
export function builtFiles(environment: NodeJS.ProcessEnv = process.env): BuiltFiles {
  const bundled = import.meta.url.endsWith('.mjs');
  const at = (beside: string, inSource: string): URL => new URL(bundled ? beside : inSource, import.meta.url);
  return {
    addon:
      environment['RUNTIME_ENFORCER_NATIVE'] ??
      fileURLToPath(at('./enforcer_native.node', '../native/build/enforcer_native.node')),
    enforcerObject: fileURLToPath(at('./enforcer.bpf.o', '../../bpf/build/enforcer.bpf.o')),
    probeObject: fileURLToPath(at('./probe.bpf.o', '../../bpf/build/probe.bpf.o')),
    policyParserWorker: at('./policy-parser-worker.mjs', './standalone/policy-parser-worker.ts'),
  };
}
