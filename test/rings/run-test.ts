import { HostCommandError } from '../vm/host-command.ts';
import type { RingReport } from './report.ts';

/**
 * Runs one test of a ring and reports how it ended and how long it took; of a program that failed, all that it said.
 * @param remedy what repairs it when it fails, as a line
 */
export async function runTest(
  report: RingReport,
  name: string,
  test: () => Promise<unknown>,
  remedy = '',
): Promise<void> {
  const start = performance.now();
  try {
    await test();
    report.passed(name, performance.now() - start);
  } catch (error) {
    report.failed(name, performance.now() - start, `${saidBy(error).trim()}${remedy && `\n${remedy}`}`);
  }
}

function saidBy(error: unknown): string {
  if (error instanceof HostCommandError) return `${error.stdout}\n${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
