import type { RingReport } from './report.ts';

/** The report of one of several parts of a ring that run at the same time. */
export interface PartReport extends RingReport {
  /** To be called once when the part has ended. */
  end(): void;
}

/**
 * Reports for parts that run at the same time: the first part that has not ended tells at once, the later ones when
 * it is their turn, so that what one part tells stands together.
 */
export function reportsInTurn(report: RingReport, parts: number): PartReport[] {
  const held: (() => void)[][] = Array.from({ length: parts }, () => []);
  const ended = new Set<number>();
  let turn = 0;
  const say = (part: number, what: () => void): void => {
    if (part === turn) what();
    else held[part]?.push(what);
  };
  const goOn = (): void => {
    while (ended.has(turn)) {
      turn++;
      for (const what of held[turn] ?? []) what();
    }
  };
  return held.map((_, part) => ({
    heading: (title) => say(part, () => report.heading(title)),
    note: (line) => say(part, () => report.note(line)),
    passed: (name, durationMs, tests) => say(part, () => report.passed(name, durationMs, tests)),
    failed: (name, durationMs, message) => say(part, () => report.failed(name, durationMs, message)),
    skipped: (name, reason) => say(part, () => report.skipped(name, reason)),
    result: () => report.result(),
    end: () => {
      ended.add(part);
      goOn();
    },
  }));
}

/**
 * Runs the parts of a ring, so many at a time, each under its title; what they tell comes in their order. Rejects as
 * soon as a part does.
 */
export async function runParts<Part extends { readonly title: string }>(
  parts: readonly Part[],
  atATime: number,
  report: RingReport,
  run: (part: Part, report: RingReport) => Promise<unknown>,
): Promise<void> {
  const reports = reportsInTurn(report, parts.length);
  const waiting = parts.map((part, index) => ({ part, turn: reports[index] }));
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next?.turn !== undefined; next = waiting.shift()) {
      next.turn.heading(next.part.title);
      await run(next.part, next.turn);
      next.turn.end();
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
}
