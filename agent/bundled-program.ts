import { join } from 'node:path';
import type { Program } from '../images/program-bundle.ts';

const HERE = import.meta.dirname;

/** The agent as it is bundled: itself, and the thread that reads large policy files. */
export const AGENT: Program = {
  name: 'agent',
  entryPoints: {
    agent: join(HERE, 'src/main.ts'),
    'policy-parser-worker': join(HERE, 'src/standalone/policy-parser-worker.ts'),
  },
  builtFiles: [
    join(HERE, 'native/build/enforcer_native.node'),
    join(HERE, '../bpf/build/enforcer.bpf.o'),
    join(HERE, '../bpf/build/probe.bpf.o'),
  ],
};
