import { describe, expect, it } from 'vitest';
import { ringReport, summaryLines } from './report.ts';

describe('ringReport', () => {
  it('counts and prints every outcome, and headings and notes only print', () => {
    const lines: string[] = [];
    const report = ringReport('kernel', (line) => lines.push(line));
    report.heading('kernel 6.1');
    report.note('loaded');
    report.passed('one', 12.4);
    report.passed('a file', 1_234, 3);
    report.failed('two', 1, 'expected 1\ngot 2\n');
    report.skipped('three', 'not asked for');
    expect(report.result()).toEqual({
      name: 'kernel',
      passed: 4,
      failed: 1,
      skipped: 1,
      failures: [{ heading: 'kernel 6.1', test: 'two', message: 'expected 1\ngot 2\n' }],
    });
    expect(lines).toEqual([
      '▸ kernel 6.1',
      '  loaded',
      '  ✔ one (12 ms)',
      '  ✔ a file (3 tests, 1,234 ms)',
      '  ✖ two (1 ms)',
      '      expected 1',
      '      got 2',
      '  - three skipped: not asked for',
    ]);
  });
});

describe('summaryLines', () => {
  it('tells the time of each ring, and every failure once more with its ring and heading', () => {
    const unit = ringReport('unit', () => undefined);
    unit.passed('a file', 5, 9);
    const kernel = ringReport('kernel', () => undefined);
    kernel.failed('before any heading', 1, 'no guest');
    kernel.heading('kernel 6.1');
    kernel.failed('two', 1, 'expected 1\ngot 2\n');
    expect(
      summaryLines([
        { result: unit.result(), durationMs: 1_234 },
        { result: kernel.result(), durationMs: 61_000 },
      ]),
    ).toEqual([
      '✔ unit      1.2 s  9 passed, 0 failed, 0 skipped',
      '✖ kernel   61.0 s  0 passed, 2 failed, 0 skipped',
      '',
      '✖ kernel › before any heading',
      '    no guest',
      '',
      '✖ kernel › kernel 6.1 › two',
      '    expected 1',
      '    got 2',
    ]);
  });

  it('leaves out the rest of a long message, and says so', () => {
    const report = ringReport('unit', () => undefined);
    report.failed('long', 1, Array.from({ length: 50 }, (_, line) => `line ${line}`).join('\n'));
    const lines = summaryLines([{ result: report.result(), durationMs: 0 }]);
    expect(lines).toContain('    line 29');
    expect(lines).not.toContain('    line 30');
    expect(lines.at(-1)).toBe('    … 20 more lines above');
  });
});
