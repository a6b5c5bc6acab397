import { join } from 'node:path';
import type { RunRing } from '../rings/report.ts';
import { runTest } from '../rings/run-test.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { playDemoInGuest } from './guest-demo.ts';

/** Lines that a person must have seen when the demo ends well, in this order. */
const TOLD = [
  '✔ the proposal lists /bin/sh, /usr/bin/date, /usr/bin/sleep',
  '✔ the policy is written',
  '✔ the violation was reported',
  '✔ /usr/bin/id failed: Operation not permitted',
  '✔ /usr/bin/date ran',
  '✔ the denial was reported',
  'The agent is killed (SIGKILL)',
  '✔ /usr/bin/id failed: Operation not permitted',
  '✔ the counters of all outcomes are there',
];

/** The demo ring: `npm run demo` ends well, and does not when something it tells is not so. */
export const run: RunRing = async (report) => {
  await runTest(report, 'tells the whole loop and ends with exit code 0', async () => {
    const output = await runHostCommand([process.execPath, join(import.meta.dirname, 'main.ts')]);
    requireInOrder(output, TOLD);
    report.note(/Done in .*/.exec(output)?.[0] ?? 'it did not say how long it took');
  });
  await runTest(report, 'ends with exit code 1 and the reason when what it says is denied runs', async () => {
    const lines: string[] = [];
    const { exitCode } = await playDemoInGuest({ heldAtMonitor: true, onLine: (line) => lines.push(line) });
    const output = lines.join('\n');
    if (exitCode !== 1) throw new Error(`exit code ${exitCode}, expected 1:\n${output}`);
    requireInOrder(output, [
      'The policy is switched to protect',
      'This did not go as told: expected, and not so: /usr/bin/id failed: Operation not permitted',
    ]);
  });
  return report.result();
};

function requireInOrder(output: string, texts: readonly string[]): void {
  let from = 0;
  for (const text of texts) {
    const at = output.indexOf(text, from);
    if (at < 0) throw new Error(`expected ${JSON.stringify(text)} (in this place) in:\n${output}`);
    from = at + text.length;
  }
}
