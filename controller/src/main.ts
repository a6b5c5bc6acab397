import { setFlagsFromString } from 'node:v8';
import { createLogger } from '@runtime-enforcer/telemetry/logger';
import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { flagsHelp, UsageError } from '@runtime-enforcer/kube/program-flags';
import { FLAGS, readControllerOptions } from './options.ts';
import { startController } from './program.ts';
import { CONTROLLER_VERSION } from './version.ts';

const COMPONENT = 'controller';
/** Kubernetes kills after ten seconds, and the lease is to be given back before. */
const STOP_BUDGET_MS = 9_000;
/** What waits for a reader that does not read. */
const MAX_WAITING_BYTES = 1024 * 1024;
const EXIT_FAILED = 1;
/**
 * A thousand agents tell a million states at once, which are garbage a moment later: the heap is to be collected
 * before it grows. Has to be said before much is allocated.
 */
const HEAP_FLAGS = '--semi-space-growth-factor=1 --optimize-for-size';
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

async function main(args: readonly string[]): Promise<void> {
  setFlagsFromString(HEAP_FLAGS);
  if (args.includes('--help')) {
    process.stdout.write(`Usage: controller [flags]\n\n${flagsHelp(FLAGS)}`);
    return;
  }
  if (args.includes('--version')) {
    process.stdout.write(`${CONTROLLER_VERSION}\n`);
    return;
  }
  const options = readControllerOptions(args, process.env);
  const log = createLogger({
    component: COMPONENT,
    level: options.logLevel,
    output: {
      write: (text) => {
        if (process.stdout.writableLength > MAX_WAITING_BYTES) return false;
        process.stdout.write(text);
        return true;
      },
    },
    onDropped: () => undefined,
  });
  const stopped = Promise.withResolvers<NodeJS.Signals>();
  for (const signal of STOP_SIGNALS) process.once(signal, stopped.resolve);
  log.info({ version: CONTROLLER_VERSION }, 'starting');
  const controller = await startController(options, log);
  const signal = await stopped.promise;
  log.info({ signal }, 'stopping');
  setTimeout(() => process.exit(EXIT_FAILED), STOP_BUDGET_MS).unref();
  await controller.stop();
  log.info({}, 'stopped');
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const hint = error instanceof UsageError ? '\ncontroller --help lists the flags' : '';
  process.stderr.write(`${COMPONENT}: ${describeError(error)}${hint}\n`);
  process.exitCode = EXIT_FAILED;
}
