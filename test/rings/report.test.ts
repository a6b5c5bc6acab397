import { describe, expect, it } from 'vitest';
import { ringReport } from './report.ts';

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
    expect(report.result()).toEqual({ name: 'kernel', passed: 4, failed: 1, skipped: 1 });
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
