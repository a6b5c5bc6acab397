/** Tells a person what happens, step by step, with the time since the beginning. */
export interface Narration {
  /** A numbered heading. */
  step(title: string): void;
  /** A line below the heading. */
  say(line: string): void;
  /** A command as one would type it, and what it printed. */
  show(command: string, output: string): void;
  /**
   * A line for something that has to be so.
   *
   * @throws Error with the sentence if it is not
   */
  expect(holds: boolean, sentence: string): void;
}

/** @param write takes one line without its end */
export function narration(write: (line: string) => void): Narration {
  const start = performance.now();
  let number = 0;
  const say = (line: string): void => write(`     ${line}`);
  return {
    step(title) {
      number++;
      write('');
      write(
        `${String(number).padStart(2)}   ${title}   (${((performance.now() - start) / 1_000).toFixed(1)} s)`,
      );
    },
    say,
    show(command, output) {
      say(`$ ${command}`);
      for (const line of output.trimEnd().split('\n')) say(`  ${line}`);
    },
    expect(holds, sentence) {
      if (!holds) throw new Error(`expected, and not so: ${sentence}`);
      say(`✔ ${sentence}`);
    },
  };
}
