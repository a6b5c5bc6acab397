/** One test or one file that could not run, out of vitest's JSON report. */
export type UnitOutcome =
  | { outcome: 'passed'; name: string; durationMs: number }
  | { outcome: 'failed'; name: string; durationMs: number; message: string }
  | { outcome: 'skipped'; name: string };

export interface UnitFile {
  /** Absolute path. */
  path: string;
  outcomes: readonly UnitOutcome[];
}

interface JsonAssertion {
  fullName: string;
  status: string;
  duration?: number | null;
  failureMessages?: readonly string[] | null;
}

interface JsonFile {
  name: string;
  status: string;
  message?: string;
  assertionResults: readonly JsonAssertion[];
}

/**
 * Reads the report of vitest's `json` reporter (the format of jest). A file that failed without a failed test, because
 * it could not be loaded or a hook failed, counts as one more failed test; of a hook the report does not tell why.
 *
 * @throws SyntaxError or TypeError for another text than such a report
 */
export function parseVitestReport(text: string): UnitFile[] {
  const report = JSON.parse(text) as { testResults: readonly JsonFile[] };
  return report.testResults.map((file) => {
    const outcomes = file.assertionResults.map(outcomeOf);
    if (file.status === 'failed' && outcomes.every(({ outcome }) => outcome !== 'failed')) {
      outcomes.push({ outcome: 'failed', name: 'the file', durationMs: 0, message: file.message ?? '' });
    }
    return { path: file.name, outcomes };
  });
}

function outcomeOf(test: JsonAssertion): UnitOutcome {
  const durationMs = test.duration ?? 0;
  switch (test.status) {
    case 'passed':
      return { outcome: 'passed', name: test.fullName, durationMs };
    case 'failed': {
      const message = (test.failureMessages ?? []).join('\n');
      return { outcome: 'failed', name: test.fullName, durationMs, message };
    }
    default:
      return { outcome: 'skipped', name: test.fullName };
  }
}
