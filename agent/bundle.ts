import { join } from 'node:path';
import { bundleProgram } from '../images/program-bundle.ts';
import { AGENT } from './bundled-program.ts';

// A node needs this directory, Node and libbpf.
await bundleProgram(AGENT, join(import.meta.dirname, 'dist'));
