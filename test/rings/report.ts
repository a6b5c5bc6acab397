/** How many tests of a ring ended how. A ring that ran nothing is a failure too. */
export interface RingResult {
  name: string;
  passed: number;
  failed: number;
  skipped: number;
}

/** What a ring module exports as `run`. */
export type RunRing = (report: RingReport) => Promise<RingResult>;

/** Where a ring tells what happens: each call prints a line and counts. */
export interface RingReport {
  /** A heading, such as the kernel that the next tests run on. Counts nothing. */
  heading(title: string): void;
  /** A line that a person may want to see. Counts nothing. */
  note(line: string): void;
  /** @param tests how many tests the line stands for; 1 when left out */
  passed(name: string, durationMs: number, tests?: number): void;
  /** @param message what went wrong; may have several lines */
  failed(name: string, durationMs: number, message: string): void;
  /** @param reason why this user's choice or the test's author left it out */
  skipped(name: string, reason: string): void;
  result(): RingResult;
}

/** @param write takes one line without its end */
export function ringReport(name: string, write: (line: string) => void): RingReport {
  const result: RingResult = { name, passed: 0, failed: 0, skipped: 0 };
  return {
    heading: (title) => write(`▸ ${title}`),
    note: (line) => write(`  ${line}`),
    passed(test, durationMs, tests = 1) {
      result.passed += tests;
      write(`  ✔ ${test} (${tests === 1 ? '' : `${tests} tests, `}${milliseconds(durationMs)})`);
    },
    failed(test, durationMs, message) {
      result.failed++;
      write(`  ✖ ${test} (${milliseconds(durationMs)})`);
      for (const line of message.trimEnd().split('\n')) write(`      ${line}`);
    },
    skipped(test, reason) {
      result.skipped++;
      write(`  - ${test} skipped: ${reason}`);
    },
    result: () => ({ ...result }),
  };
}

function milliseconds(durationMs: number): string {
  return `${Math.round(durationMs).toLocaleString('en')} ms`;
}
