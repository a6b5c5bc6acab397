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
  let emptyLineHeld = false;

  const emit = (line: string): void => {
    lines.push(line);
    onLine(line);
  };
  const takeLine = (line: string): void => {
    const [event, value] = line.startsWith(mark) ? line.slice(mark.length).trim().split(' ') : [];
    if (event === 'exit') {
      // The empty line in front of this mark is ours: it ends a last line that the command left open.
      exitCode = Number(value);
      return;
    }
    if (emptyLineHeld) emit('');
    emptyLineHeld = line === '';
    if (event === 'ready') readySeconds = Number(value);
    else if (line !== '') emit(line);
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
