import { join } from 'node:path';
import type { Program } from '../images/program-bundle.ts';

/** The controller as it is bundled. */
export const CONTROLLER: Program = {
  name: 'controller',
  entryPoints: { controller: join(import.meta.dirname, 'src/main.ts') },
  builtFiles: [],
};
