/** How the process ends. Scripts may rely on these. */
export type ExitCode = typeof EXIT_OK | typeof EXIT_ERROR | typeof EXIT_USAGE | typeof EXIT_FINDING;

export const EXIT_OK = 0;
export const EXIT_ERROR = 1;
/** The command line was not understood. */
export const EXIT_USAGE = 2;
/** The command did its work, and what it looked for is there: a difference, a denial, a failed test, a defect. */
export const EXIT_FINDING = 3;
