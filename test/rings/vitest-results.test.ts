import { describe, expect, it } from 'vitest';
import { parseVitestReport } from './vitest-results.ts';

const report = (file: object): string => JSON.stringify({ testResults: [{ name: '/r/a.test.ts', ...file }] });

describe('parseVitestReport', () => {
  it('gives every test with its outcome', () => {
    const text = report({
      status: 'failed',
      assertionResults: [
        { fullName: 'x good', status: 'passed', duration: 3 },
        { fullName: 'x bad', status: 'failed', duration: 4, failureMessages: ['why'] },
        { fullName: 'x left', status: 'skipped' },
        { fullName: 'x later', status: 'todo' },
      ],
    });
    expect(parseVitestReport(text)).toEqual([
      {
        path: '/r/a.test.ts',
        outcomes: [
          { outcome: 'passed', name: 'x good', durationMs: 3 },
          { outcome: 'failed', name: 'x bad', durationMs: 4, message: 'why' },
          { outcome: 'skipped', name: 'x left' },
          { outcome: 'skipped', name: 'x later' },
        ],
      },
    ]);
  });

  it('counts a file that could not be loaded, or whose hook failed, as a failure', () => {
    const broken = report({ status: 'failed', message: 'cannot import', assertionResults: [] });
    expect(parseVitestReport(broken)[0]?.outcomes).toEqual([
      { outcome: 'failed', name: 'the file', durationMs: 0, message: 'cannot import' },
    ]);
    const hook = report({
      status: 'failed',
      assertionResults: [{ fullName: 'x', status: 'passed', duration: 1 }],
    });
    expect(parseVitestReport(hook)[0]?.outcomes).toMatchObject([
      { outcome: 'passed' },
      { outcome: 'failed', name: 'the file', message: '' },
    ]);
  });
});
