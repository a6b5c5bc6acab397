import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { HostCommandError, runHostCommand } from '../vm/host-command.ts';
import { REPOSITORY } from '../vm/repository.ts';
import type { RingReport, RingResult } from './report.ts';
import { type UnitFile, parseVitestReport } from './vitest-results.ts';

/** All tests beside the code, by vitest: a line for each file's passed tests and one for each other test. */
export async function runUnitRing(report: RingReport): Promise<RingResult> {
  return await runVitestRing(report, []);
}

/**
 * The tests that vitest finds with these further arguments, reported as {@link runUnitRing} does.
 *
 * @param env added to the environment in which they run
 * @param within a command that becomes the one behind it, such as `unshare --net`
 */
export async function runVitestRing(
  report: RingReport,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  within: readonly string[] = [],
): Promise<RingResult> {
  const start = performance.now();
  const { failed: failedBefore } = report.result();
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-unit-'));
  const reportFile = join(directory, 'report.json');
  try {
    const trouble = await runVitest(reportFile, args, env, within);
    const text = await readFile(reportFile, 'utf8').catch(() => undefined);
    if (text !== undefined)
      for (const file of parseVitestReport(text)) reportFileResult(file, report, trouble);
    if (trouble !== undefined && (text === undefined || report.result().failed === failedBefore)) {
      report.failed('vitest', performance.now() - start, trouble);
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return report.result();
}

async function runVitest(
  reportFile: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  within: readonly string[],
): Promise<string | undefined> {
  try {
    // The second tells why a hook failed, which the first leaves out.
    const output = ['--silent', '--reporter=json', `--outputFile.json=${reportFile}`, '--reporter=default'];
    const [program = 'vitest', ...words] = [...within, 'vitest', 'run', ...output, ...args];
    await runHostCommand([program, ...words], { cwd: REPOSITORY, env });
    return undefined;
  } catch (error) {
    if (!(error instanceof HostCommandError)) return String(error);
    return stripVTControlCharacters(`${error.message}\n${error.stdout}`);
  }
}

/** @param trouble what vitest said, where it failed */
function reportFileResult({ path, outcomes }: UnitFile, report: RingReport, trouble = ''): void {
  const file = relative(REPOSITORY, path);
  const passed = outcomes.filter((test) => test.outcome === 'passed');
  if (passed.length > 0) {
    const durationMs = passed.reduce((sum, test) => sum + test.durationMs, 0);
    report.passed(file, durationMs, passed.length);
  }
  for (const test of outcomes) {
    if (test.outcome === 'failed') {
      report.failed(`${file}: ${test.name}`, test.durationMs, test.message || trouble);
    } else if (test.outcome === 'skipped') report.skipped(`${file}: ${test.name}`, 'left out by its author');
  }
}
