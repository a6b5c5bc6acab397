/** Takes one line that tells a person what is being done now. */
export type Progress = (line: string) => void;

/** Writes progress lines to stderr, so that they never mix with a program's results on stdout. */
export function printProgress(line: string): void {
  process.stderr.write(`· ${line}\n`);
}
