import { createInterface } from 'node:readline/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import colors from 'picocolors';

export type Colors = ReturnType<typeof colors.createColors>;

/** Where a command writes, and whom it can ask. */
export interface Terminal {
  /** Colours of what goes to standard output. */
  readonly colors: Colors;
  /** Somebody is there who can answer a question. */
  readonly interactive: boolean;
  /** To standard output, as it is. */
  readonly write: (text: string) => void;
  /** A line to standard error: progress, warnings and remarks. */
  readonly note: (line: string) => void;
  /**
   * One line of standard input without its end; the question is shown only where somebody can answer it.
   * @returns undefined when there is no line
   */
  readonly ask: (question: string) => Promise<string | undefined>;
}

/** The terminal, or the pipes, that the process was started with. */
export function processTerminal(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Terminal {
  const input: Pick<ReadStream, 'isTTY'> & NodeJS.ReadableStream = process.stdin;
  const output: Pick<WriteStream, 'isTTY'> & NodeJS.WritableStream = process.stdout;
  const interactive = input.isTTY && process.stderr.isTTY;
  return {
    colors: colors.createColors(wantsColor(output.isTTY, environment)),
    interactive,
    write: (text) => void output.write(text),
    note: (line) => void process.stderr.write(`${line}\n`),
    async ask(question) {
      if (interactive) process.stderr.write(question);
      const lines = createInterface({ input, terminal: false });
      try {
        const { promise, resolve } = Promise.withResolvers<string | undefined>();
        lines.once('line', resolve);
        lines.once('close', () => resolve(undefined));
        return await promise;
      } finally {
        lines.close();
      }
    },
  };
}

/** Only on a terminal that can show it, and never where NO_COLOR is set (no-color.org). */
export function wantsColor(
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const { NO_COLOR: refusal = '', TERM } = environment;
  return isTerminal && refusal === '' && TERM !== 'dumb';
}
