import { join, relative } from 'node:path';
import type { RingReport } from '../rings/report.ts';
import { bundleForGuest } from './guest-bundle.ts';
import { type GuestEvent, decodeGuestLine } from './guest-event.ts';
import type { PayloadItem } from './guest-initramfs.ts';
import { type GuestOptions, runInGuest } from './guest.ts';
import { REPOSITORY } from './repository.ts';

const TESTS_IN_GUEST = '/run/payload/guest-tests.mjs';
const REPORTER_IN_GUEST = '/run/payload/guest-reporter.mjs';
const DEFAULT_TEST_TIMEOUT_MS = 60_000;
/** Only tests whose name matches this regular expression run; the others do not count. */
const NAME_PATTERN_VARIABLE = 'RUNTIME_ENFORCER_TEST_NAME';

export interface GuestSuiteOptions extends Omit<GuestOptions, 'command' | 'payload' | 'onLine'> {
  /** Test files that use node:test, as absolute paths; they run in this order in one process. */
  files: readonly string[];
  payload?: readonly PayloadItem[];
  /** For each test; 60 s when left out. */
  testTimeoutMs?: number;
}

export interface GuestSuiteResult {
  passed: number;
  failed: number;
  skipped: number;
  failures: readonly { name: string; message: string }[];
}

/**
 * Runs test files in a guest and reports every test as it ends. A guest that does not boot, dies, or goes away before
 * all tests have ended, and a run without any test, is one more failed test with the guest's console in its message.
 */
export async function runGuestSuite(
  options: GuestSuiteOptions,
  report: RingReport,
): Promise<GuestSuiteResult> {
  const { files, testTimeoutMs, ...guest } = options;
  const failures: { name: string; message: string }[] = [];
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const state = { running: 'before the first test', ended: false };
  const suite = files.map((file) => relative(REPOSITORY, file)).join(', ');

  const fail = (name: string, durationMs: number, message: string): void => {
    counts.failed++;
    failures.push({ name, message });
    report.failed(name, durationMs, message);
  };
  const take = (event: GuestEvent): void => {
    switch (event.event) {
      case 'running':
        state.running = event.name;
        break;
      case 'passed':
        counts.passed++;
        report.passed(event.name, event.durationMs);
        break;
      case 'failed':
        fail(event.name, event.durationMs, event.message);
        break;
      case 'skipped':
        counts.skipped++;
        report.skipped(event.name, event.reason);
        break;
      case 'end':
        state.ended = true;
    }
  };

  const start = performance.now();
  try {
    const result = await runInGuest({
      ...guest,
      payload: [...(options.payload ?? []), ...(await suitePayload(files))],
      command: nodeCommand(testTimeoutMs ?? DEFAULT_TEST_TIMEOUT_MS),
      onLine: (line) => {
        const { text, event } = decodeGuestLine(line);
        if (text !== '') report.note(text);
        if (event !== undefined) take(event);
      },
    });
    const durationMs = performance.now() - start;
    const console = `--- the guest's console\n${result.consoleLog.trimEnd()}\n---`;
    if (!state.ended)
      fail(suite, durationMs, `ended with code ${result.exitCode} in or after: ${state.running}\n${console}`);
    else if (counts.failed > 0) for (const line of console.split('\n')) report.note(line);
    else if (result.exitCode !== 0)
      fail(suite, durationMs, `exit code ${result.exitCode} after its tests\n${console}`);
    else if (counts.passed + counts.skipped === 0) fail(suite, durationMs, 'ran no test');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    fail(suite, performance.now() - start, `in or after: ${state.running}\n${message}`);
  }
  return { ...counts, failures };
}

async function suitePayload(files: readonly string[]): Promise<PayloadItem[]> {
  const tests = files.map((file) => `import ${JSON.stringify(file)};\n`).join('');
  const reporter = join(import.meta.dirname, 'guest-reporter.ts');
  // node:test wants its reporter as a default export, which nothing else here has.
  const reporterEntry = `export { guestReporter as default } from ${JSON.stringify(reporter)};\n`;
  return [
    { path: TESTS_IN_GUEST, source: await bundleForGuest(tests) },
    { path: REPORTER_IN_GUEST, source: await bundleForGuest(reporterEntry) },
  ];
}

function nodeCommand(testTimeoutMs: number): string[] {
  const pattern = process.env[NAME_PATTERN_VARIABLE];
  return [
    'node',
    // What a failed test left running would keep the guest until its time is over.
    '--test-force-exit',
    `--test-reporter=${REPORTER_IN_GUEST}`,
    '--test-reporter-destination=stdout',
    `--test-timeout=${testTimeoutMs}`,
    ...(pattern === undefined || pattern === '' ? [] : [`--test-name-pattern=${pattern}`]),
    TESTS_IN_GUEST,
  ];
}
