import { appendFile } from 'node:fs/promises';

/** Where a test writes what the ring's log is to show: vitest keeps what tests print to itself. */
export const NOTES_VARIABLE = 'RUNTIME_ENFORCER_E2E_NOTES';

/** Writes a line for whoever reads the ring's log. */
export async function note(line: string): Promise<void> {
  const file = process.env[NOTES_VARIABLE];
  if (file !== undefined) await appendFile(file, `${line}\n`);
}
