import { setFlagsFromString } from 'node:v8';
import { createLogger } from '@runtime-enforcer/telemetry/logger';
import { boundedOutput } from '../bounded-output.ts';
import { startMetrics } from '../metrics.ts';
import { findNodeFit } from '../node/kernel-side.ts';
import { ownDirectory } from '../node/own-directory.ts';
import { AGENT_VERSION } from '../version.ts';
import type { RunOptions } from './run-options.ts';
import type { RunContext } from './run-context.ts';
import { createStopStack } from './stop-stack.ts';

/** Text that waits for the reader of standard output, and of standard error. */
const MAX_WAITING_OUTPUT_BYTES = 4 * 1024 * 1024;
/** How long the readers of our output may take to read the last of it. */
const FLUSH_TIMEOUT_MS = 500;

/**
 * While policies are loaded at the start, the heap grows as little as it can, its young generation not at all: ten
 * thousand policies then leave 80 MiB less resident, for a third more of time. Has to be said before much is allocated.
 */
const START_HEAP_FLAGS = '--semi-space-growth-factor=1 --optimize-for-size';
/** From then on answering in time counts more: small heaps are collected often, and the runtime waits meanwhile. */
const HEAP_FLAGS = '--no-optimize-for-size';

/**
 * Runs the agent until it is told to end. Rejects if it cannot start. Returns the exit code.
 *
 * @param findFit by default looks at the machine
 */
export async function runAgent(
  options: RunOptions,
  findFit: typeof findNodeFit = findNodeFit,
): Promise<number> {
  setFlagsFromString(START_HEAP_FLAGS);
  const metrics = startMetrics();
  const { counters } = metrics;
  const onOutputError = (): void => counters.add('output_errors');
  const out = boundedOutput(process.stdout, MAX_WAITING_OUTPUT_BYTES, onOutputError);
  const errors = boundedOutput(process.stderr, MAX_WAITING_OUTPUT_BYTES, onOutputError);
  // In a pod there is nothing else on standard output, and collectors expect logs there.
  const logOutput = options.cluster === undefined ? errors : out;
  const log = createLogger({
    component: 'agent',
    level: options.logLevel,
    output: logOutput,
    onDropped: () => counters.add('log_lines_dropped'),
  });
  const stops = createStopStack((name, error) =>
    log.error({ err: error, part: name }, 'a part of the agent did not stop in order'),
  );

  /** A mistake in the program: nothing can be trusted any more but what the kernel holds. */
  const onFault = (error: unknown): void => {
    log.error({ err: error }, 'the agent ends because of a fault in it; enforcement in the kernel stays on');
    void logOutput.flush(FLUSH_TIMEOUT_MS).then(() => process.exit(1));
  };
  process.on('uncaughtException', onFault);
  process.on('unhandledRejection', onFault);

  const termination = waitForTermination();
  const context: RunContext = {
    ...{ options, log, metrics, out, stops, termination: termination.signal },
    onReady() {
      setFlagsFromString(HEAP_FLAGS);
      log.info({}, 'agent is ready');
    },
  };
  const start = async (): Promise<void> => {
    await ownDirectory(options.stateDirectory, '--state-dir', 0o700);
    log.info({ version: AGENT_VERSION, pid: process.pid, node: process.version }, 'agent starts');
    // Each mode loads what it needs, and nothing of the other.
    if (options.cluster === undefined) {
      const { startStandalone } = await import('../standalone/run-standalone.ts');
      await startStandalone(context, findFit);
      context.onReady();
    } else {
      const { runCluster } = await import('../cluster/run-cluster.ts');
      await runCluster(context, options.cluster, findFit);
    }
  };

  try {
    await Promise.race([start(), termination.requested]);
    await termination.requested;
    log.info({ signal: termination.signal.reason as string, onExit: options.onExit }, 'agent stops');
    return 0;
  } catch (error) {
    if (termination.signal.aborted) return 0;
    throw error;
  } finally {
    await stops.stop();
    metrics.stop();
    await Promise.all([out.flush(FLUSH_TIMEOUT_MS), errors.flush(FLUSH_TIMEOUT_MS)]);
  }
}

/** The first SIGTERM or SIGINT asks for an orderly stop, the second ends the process at once. */
function waitForTermination(): { readonly requested: Promise<void>; readonly signal: AbortSignal } {
  const abort = new AbortController();
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (abort.signal.aborted) process.exit(1);
    abort.abort(signal);
    resolve(undefined);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return { requested: promise, signal: abort.signal };
}
