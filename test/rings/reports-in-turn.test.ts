import { expect, it } from 'vitest';
import { ringReport } from './report.ts';
import { reportsInTurn, runParts } from './reports-in-turn.ts';

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
  expect(report.result()).toEqual({
    ...{ name: 'example', passed: 1, failed: 1, skipped: 1 },
    failures: [{ heading: '', test: 'zwei', message: 'why' }],
  });
});

it('runs parts beside each other, no more than it may, and tells of each under its title', async () => {
  const lines: string[] = [];
  const report = ringReport('example', (line) => lines.push(line));
  const running: string[] = [];
  let most = 0;
  await runParts([{ title: 'a' }, { title: 'b' }, { title: 'c' }], 2, report, async ({ title }, each) => {
    running.push(title);
    most = Math.max(most, running.length);
    // The first takes longest.
    for (let turn = 0; turn < (title === 'a' ? 5 : 1); turn++) await new Promise(setImmediate);
    each.note(`in ${title}`);
    running.splice(running.indexOf(title), 1);
  });
  expect(lines).toEqual(['▸ a', '  in a', '▸ b', '  in b', '▸ c', '  in c']);
  expect(most).toBe(2);
});
