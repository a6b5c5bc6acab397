import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import { flagsHelp, UsageError } from '@runtime-enforcer/kube/program-flags';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { FLAGS, readDebuggerOptions } from './options.ts';
import { runDebugger } from './program.ts';
import { DEBUGGER_VERSION } from './version.ts';

const PROGRAM = 'debugger';
const EXIT_FAILED = 1;
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

function complain(line: string): void {
  process.stderr.write(`${PROGRAM}: ${escapeUnprintable(line)}\n`);
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(
      `Compares what agents know with the cluster, and with the kernels of their nodes.\n\nUsage: ${PROGRAM} [flags]\n\n${flagsHelp(FLAGS)}`,
    );
    return 0;
  }
  if (args.includes('--version')) {
    process.stdout.write(`${DEBUGGER_VERSION}\n`);
    return 0;
  }
  const options = readDebuggerOptions(args, process.env);
  const stopped = new AbortController();
  for (const signal of STOP_SIGNALS) process.once(signal, () => stopped.abort());
  const write = (text: string): void => void process.stdout.write(text);
  return await runDebugger(options, { write, complain }, stopped.signal);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const hint = error instanceof UsageError ? `; ${PROGRAM} --help lists the flags` : '';
  complain(`${describeError(error)}${hint}`);
  process.exitCode = EXIT_FAILED;
}
