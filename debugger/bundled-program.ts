import { join } from 'node:path';
import type { Program } from '../images/program-bundle.ts';

/** The debugger as it is bundled. */
export const DEBUGGER: Program = {
  name: 'debugger',
  entryPoints: { debugger: join(import.meta.dirname, 'src/main.ts') },
  builtFiles: [],
};
