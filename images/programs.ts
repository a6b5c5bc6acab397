import { AGENT } from '../agent/bundled-program.ts';
import { CONTROLLER } from '../controller/bundled-program.ts';
import { DEBUGGER } from '../debugger/bundled-program.ts';
import { NOBODY_ID } from './base-layer.ts';
import type { Program } from './program-bundle.ts';

/** A program that has an image of its own. */
export interface ImageProgram {
  readonly program: Program;
  /** One sentence, for the image's labels. */
  readonly description: string;
  /** By number; who asks the kernel for a program has to be root. */
  readonly userId: number;
}

/** All programs that have an image. */
export const IMAGE_PROGRAMS: readonly ImageProgram[] = [
  {
    program: AGENT,
    description: 'Runtime Enforcer on a node: decides which executables containers may start',
    userId: 0,
  },
  {
    program: CONTROLLER,
    description: 'Runtime Enforcer beside the Kubernetes API: promotion, status, admission',
    userId: NOBODY_ID,
  },
  {
    program: DEBUGGER,
    description:
      'Runtime Enforcer under the loupe: compares what agents, the Kubernetes API and kernels know',
    userId: NOBODY_ID,
  },
];

/** @throws RangeError for a name that no image has */
export function imageProgramNamed(name: string): ImageProgram {
  const found = IMAGE_PROGRAMS.find(({ program }) => program.name === name);
  if (found !== undefined) return found;
  const known = IMAGE_PROGRAMS.map(({ program }) => program.name).join(', ');
  throw new RangeError(`there is no image ${JSON.stringify(name)}; there are ${known}`);
}
