import type { RunCommand } from '../command-context.ts';
import { EXIT_OK } from '../exit-code.ts';

/** What kubectl runs to complete a word (since 1.26); see kubectl's documentation of plugins. */
export const COMPLETION_PROGRAM = `#!/bin/sh
exec kubectl-runtime_enforcer __complete "$@"
`;

/** `completion`. */
export const printCompletion: RunCommand = async ({ terminal }) => {
  terminal.write(COMPLETION_PROGRAM);
  return await Promise.resolve(EXIT_OK);
};
