import { writeSync } from 'node:fs';

const STANDARD_OUTPUT = 1;

/**
 * Plays to the end and ends this process: with exit code 0, or with 1 and the reason as the last line of standard
 * output. Whatever was started and still runs, as an agent or a connection, does not keep it.
 */
export async function playToTheEnd(play: () => Promise<void>): Promise<never> {
  try {
    await play();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // Synchronously: what is only queued would be lost with the process.
    writeSync(STANDARD_OUTPUT, `\nThis did not go as told: ${message}\n`);
    process.exit(1);
  }
  process.exit(0);
}
