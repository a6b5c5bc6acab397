import pino from 'pino';
import { describeError, isProgramFault } from './error-text.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The part of pino's interface that the programs use. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Where lines go. */
export interface LogOutput {
  /** False if the text was dropped: a log never waits for its reader. */
  write(text: string): boolean;
}

/**
 * A logger that writes JSON lines. An error in the field `err` is told by its messages; its stack is added when it
 * is a fault of the program, and at level `debug`.
 * @param options.component the program, such as `agent`
 * @param options.onDropped called for each line that the output did not take
 */
export function createLogger(options: {
  component: string;
  level: LogLevel;
  output: LogOutput;
  onDropped: () => void;
}): Logger {
  const { component, level, output, onDropped } = options;
  return pino(
    {
      level,
      base: { component },
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
