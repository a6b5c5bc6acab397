import { expect, it } from 'vitest';
import { ringReport } from './report.ts';
import { reportsInTurn } from './reports-in-turn.ts';

it('tells what parts say in their order, and at once for the one whose turn it is', () => {
  const lines: string[] = [];
  const report = ringReport('example', (line) => lines.push(line));
  const [first, second, third] = reportsInTurn(report, 3);
  third?.heading('third');
  third?.end();
  second?.passed('two', 1);
  first?.note('one');
  expect(lines).toEqual(['  one']);
  second?.failed('zwei', 1, 'why');
  first?.end();
  expect(lines.slice(1)).toEqual(['  \u2714 two (1 ms)', '  \u2716 zwei (1 ms)', '      why']);
  second?.skipped('due', 'because');
  second?.end();
  expect(lines.slice(4)).toEqual(['  - due skipped: because', '\u25b8 third']);
  expect(report.result()).toEqual({ name: 'example', passed: 1, failed: 1, skipped: 1 });
});
