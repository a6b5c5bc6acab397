/** How many tests of a ring ended how. A ring that ran nothing is a failure too. */
export interface RingResult {
  name: string;
  passed: number;
  failed: number;
  skipped: number;
  failures: readonly Failure[];
}

/** A test that failed, as it is told once more at the end of all rings. */
export interface Failure {
  /** The heading it stood under, such as the kernel; empty where there was none. */
  heading: string;
  test: string;
  message: string;
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
  const failures: Failure[] = [];
  const result: RingResult = { name, passed: 0, failed: 0, skipped: 0, failures };
  let heading = '';
  return {
    heading(title) {
      heading = title;
      write(`▸ ${title}`);
    },
    note: (line) => write(`  ${line}`),
    passed(test, durationMs, tests = 1) {
      result.passed += tests;
      write(`  ✔ ${test} (${tests === 1 ? '' : `${tests} tests, `}${milliseconds(durationMs)})`);
    },
    failed(test, durationMs, message) {
      result.failed++;
      failures.push({ heading, test, message });
      write(`  ✖ ${test} (${milliseconds(durationMs)})`);
      for (const line of message.trimEnd().split('\n')) write(`      ${line}`);
    },
    skipped(test, reason) {
      result.skipped++;
      write(`  - ${test} skipped: ${reason}`);
    },
    result: () => ({ ...result, failures: [...failures] }),
  };
}

/** A ring that has ended, and how long it took. */
export interface EndedRing {
  result: RingResult;
  durationMs: number;
}

/** Lines of a failure's message that the summary repeats. */
const SUMMARY_LINES = 30;

/**
 * What stands at the end of a run of several rings: the time of each, then every failure once more, because the end of
 * a long output is often all that is kept of it.
 */
export function summaryLines(rings: readonly EndedRing[]): string[] {
  const width = Math.max(0, ...rings.map(({ result }) => result.name.length));
  const lines = rings.map(
    ({ result, durationMs }) =>
      `${result.failed > 0 ? '✖' : '✔'} ${result.name.padEnd(width)} ${seconds(durationMs).padStart(8)}  ${counts(result)}`,
  );
  for (const { result } of rings) {
    for (const { heading, test, message } of result.failures) {
      lines.push('', ['✖', result.name, ...(heading === '' ? [] : ['›', heading]), '›', test].join(' '));
      const text = message.trimEnd().split('\n');
      for (const line of text.slice(0, SUMMARY_LINES)) lines.push(`    ${line}`);
      if (text.length > SUMMARY_LINES) lines.push(`    … ${text.length - SUMMARY_LINES} more lines above`);
    }
  }
  return lines;
}

/** `N passed, N failed, N skipped`. */
export function counts(result: Pick<RingResult, 'passed' | 'failed' | 'skipped'>): string {
  return `${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`;
}

/** A duration as people read it, such as `12.3 s`. */
export function seconds(durationMs: number): string {
  return `${(durationMs / 1_000).toFixed(1)} s`;
}

function milliseconds(durationMs: number): string {
  return `${Math.round(durationMs).toLocaleString('en')} ms`;
}
