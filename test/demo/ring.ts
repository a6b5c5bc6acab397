import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { RingReport, RunRing } from '../rings/report.ts';
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
  await inTime(report, 'tells the whole loop and ends with exit code 0', async () => {
    const { code, output } = await demoCommand();
    if (code !== 0) throw new Error(`exit code ${code}, expected 0:\n${output}`);
    requireInOrder(output, TOLD);
    report.note(/Done in .*/.exec(output)?.[0] ?? 'it did not say how long it took');
  });
  await inTime(report, 'ends with exit code 1 and the reason when what it says is denied runs', async () => {
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

async function inTime(report: RingReport, name: string, test: () => Promise<void>): Promise<void> {
  const start = performance.now();
  try {
    await test();
    report.passed(name, performance.now() - start);
  } catch (error) {
    report.failed(name, performance.now() - start, error instanceof Error ? error.message : String(error));
  }
}

async function demoCommand(): Promise<{ code: number | null; output: string }> {
  const demo = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [demo.stdout, demo.stderr]) {
    stream.on('data', (data: Buffer) => (output += data.toString()));
  }
  const [code] = (await once(demo, 'close')) as [number | null];
  return { code, output };
}

function requireInOrder(output: string, texts: readonly string[]): void {
  let from = 0;
  for (const text of texts) {
    const at = output.indexOf(text, from);
    if (at < 0) throw new Error(`expected ${JSON.stringify(text)} (in this place) in:\n${output}`);
    from = at + text.length;
  }
}
