import { inspect } from 'node:util';
import pino from 'pino';
import type { BoundedOutput } from './bounded-output.ts';
import type { Logger } from './nri/handlers.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Longest chain of causes that is told. */
const MAX_CAUSES = 8;

/**
 * A logger that writes JSON lines. An error in the field `err` is told by its messages; its stack is added when it
 * is a fault of the program, and at level `debug`.
 * @param onDropped called for each line that the output did not take
 */
export function createLog(level: LogLevel, output: BoundedOutput, onDropped: () => void): Logger {
  return pino(
    {
      level,
      base: { component: 'agent' },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: {
        err: (error: unknown) =>
          level === 'debug' || isProgramFault(error)
            ? { message: describeError(error), stack: error instanceof Error ? error.stack : undefined }
            : describeError(error),
      },
    },
    {
      write(line: string) {
        if (!output.write(line)) onDropped();
      },
    },
  );
}

/** An error and its causes in one sentence, without stacks. */
export function describeError(error: unknown): string {
  const messages: string[] = [];
  let each = error;
  for (let depth = 0; each !== undefined && depth < MAX_CAUSES; depth++) {
    const message = each instanceof Error ? each.message : inspect(each);
    // Many errors repeat the message of their cause.
    if (!messages.some((known) => known.includes(message))) messages.push(message);
    each = each instanceof Error ? each.cause : undefined;
  }
  return messages.join(': ');
}

/** Whether an error can only come from a mistake in the program. */
export function isProgramFault(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
