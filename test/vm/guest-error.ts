import type { GuestOutput } from './guest-output.ts';
import type { GuestEnd } from './guest-process.ts';

const SHOWN_LINES = 60;

/** A guest that went away without telling how its command ended. */
export class GuestError extends Error {
  readonly consoleLog: string;
  readonly output: string;

  constructor(reason: string, guest: { kernel: string }, consoleLog: string, output: string) {
    super(
      [
        `guest with kernel ${guest.kernel}: ${reason}`,
        section('the end of its console', consoleLog),
        section("the end of its command's output", output),
      ].join('\n'),
    );
    this.name = 'GuestError';
    this.consoleLog = consoleLog;
    this.output = output;
  }
}

/** Why there is no exit code, in one sentence. */
export function explainEnd(end: GuestEnd, consoleLog: string, output: GuestOutput): string {
  const where = output.readySeconds === undefined ? 'before it had booted' : 'while its command ran';
  const panic = /Kernel panic[^\n]*/.exec(consoleLog);
  if (panic !== null) return `panicked ${where}: ${panic[0].trim()}`;
  const trouble = /^guest: (.*)$/m.exec(consoleLog);
  if (trouble?.[1] !== undefined) return `could not start: ${trouble[1].trim()}`;
  if (end.timedOut) return `was ended after ${(end.durationMs / 1_000).toFixed(0)} s ${where}`;
  if (end.stderr.trim() !== '') return `QEMU ended ${where}: ${end.stderr.trim()}`;
  return `powered off ${where}`;
}

function section(title: string, text: string): string {
  const lines = text.trimEnd().split('\n').slice(-SHOWN_LINES);
  return [`--- ${title}`, ...lines, '---'].join('\n');
}
