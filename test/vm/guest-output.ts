const MAX_LINE_CHARACTERS = 1_000_000;

/** What a guest says through its second serial port, beside its command's own output. */
export interface GuestOutput {
  /** Takes the next bytes. */
  push(chunk: Uint8Array): void;
  /** Seconds from power-on until the command started; undefined before. */
  readonly readySeconds: number | undefined;
  /** The command's exit code; undefined until it ended. */
  readonly exitCode: number | undefined;
  /** All of the command's output so far, without our marks. */
  readonly text: string;
}

/**
 * Splits the bytes of the serial port into the command's lines and the two marks that the guest's first process writes
 * (`MARK ready SECONDS` and `MARK exit CODE`). A line longer than a million characters is cut there.
 *
 * @param mark a text that the command cannot know, so that nothing it prints passes for a mark
 */
export function guestOutput(mark: string, onLine: (line: string) => void): GuestOutput {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let pending = '';
  let readySeconds: number | undefined;
  let exitCode: number | undefined;

  const takeLine = (line: string): void => {
    if (!line.startsWith(mark)) {
      // Without a line end of its own the command's last line was ended by the mark's leading one.
      lines.push(line);
      onLine(line);
      return;
    }
    const [event, value] = line.slice(mark.length).trim().split(' ');
    if (event === 'ready') readySeconds = Number(value);
    else if (event === 'exit') {
      if (lines.at(-1) === '') lines.pop();
      exitCode = Number(value);
    }
  };

  return {
    push(chunk) {
      if (exitCode !== undefined) return;
      pending += decoder.decode(chunk, { stream: true });
      for (let end = pending.indexOf('\n'); end >= 0; end = pending.indexOf('\n')) {
        takeLine(pending.slice(0, end));
        pending = pending.slice(end + 1);
      }
      if (pending.length > MAX_LINE_CHARACTERS) {
        takeLine(pending);
        pending = '';
      }
    },
    get readySeconds() {
      return readySeconds;
    },
    get exitCode() {
      return exitCode;
    },
    get text() {
      return [...lines, pending].join('\n');
    },
  };
}
