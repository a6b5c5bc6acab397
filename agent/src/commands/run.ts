import { setFlagsFromString } from 'node:v8';
import { createLogger } from '@runtime-enforcer/telemetry/logger';
import { boundedOutput } from '../bounded-output.ts';
import { startMetrics } from '../metrics.ts';
import { problemOf } from '../node/bounded-file.ts';
import { openKernelSide } from '../node/kernel-side.ts';
import { createMetricsServer } from '../node/metrics-server.ts';
import { ownDirectory } from '../node/own-directory.ts';
import { createStandaloneAgent } from '../standalone/standalone-agent.ts';
import { createStatusSocket } from '../node/status-socket.ts';
import { recoverJournal } from '../violations/journal-recovery.ts';
import { createLineFile } from '../violations/line-file.ts';
import { AGENT_VERSION } from '../version.ts';
import { CommandError } from './command-error.ts';
import type { RunOptions } from './run-options.ts';
import { createStopStack } from './stop-stack.ts';

/** Text that waits for the reader of standard output, and of standard error. */
const MAX_WAITING_OUTPUT_BYTES = 4 * 1024 * 1024;
/** How long each part of an orderly stop may take; all together less than 5 s. */
const AGENT_STOP_MS = 2_000;
const KERNEL_STOP_MS = 1_000;
const SERVER_STOP_MS = 200;
const FLUSH_TIMEOUT_MS = 500;

/**
 * While policies are loaded at the start, the heap grows as little as it can, its young generation not at all: ten
 * thousand policies then leave 80 MiB less resident, for a third more of time. Has to be said before much is allocated.
 */
const START_HEAP_FLAGS = '--semi-space-growth-factor=1 --optimize-for-size';
/** From then on answering in time counts more: small heaps are collected often, and the runtime waits meanwhile. */
const HEAP_FLAGS = '--no-optimize-for-size';

/** Runs the agent until it is told to end. Rejects if it cannot start. Returns the exit code. */
export async function runAgent(options: RunOptions): Promise<number> {
  setFlagsFromString(START_HEAP_FLAGS);
  const metrics = startMetrics();
  const { counters } = metrics;
  const onOutputError = (): void => counters.add('output_errors');
  const out = boundedOutput(process.stdout, MAX_WAITING_OUTPUT_BYTES, onOutputError);
  const errors = boundedOutput(process.stderr, MAX_WAITING_OUTPUT_BYTES, onOutputError);
  const log = createLogger({
    component: 'agent',
    level: options.logLevel,
    output: errors,
    onDropped: () => counters.add('log_lines_dropped'),
  });
  const stops = createStopStack((name, error) =>
    log.error({ err: error, part: name }, 'a part of the agent did not stop in order'),
  );

  /** A mistake in the program: nothing can be trusted any more but what the kernel holds. */
  const onFault = (error: unknown): void => {
    log.error({ err: error }, 'the agent ends because of a fault in it; enforcement in the kernel stays on');
    void errors.flush(FLUSH_TIMEOUT_MS).then(() => process.exit(1));
  };
  process.on('uncaughtException', onFault);
  process.on('unhandledRejection', onFault);

  const termination = waitForTermination();
  const start = async (): Promise<void> => {
    await ownDirectory(options.stateDirectory, '--state-dir', 0o700);
    if (options.learnDirectory !== undefined) {
      await ownDirectory(options.learnDirectory, '--learn-dir', 0o755);
    }
    log.info({ version: AGENT_VERSION, pid: process.pid, node: process.version }, 'agent starts');
    const { violationsFile } = options;
    const recovered = violationsFile === undefined ? [] : await recover(violationsFile);
    const file =
      violationsFile === undefined ? undefined : createLineFile({ file: violationsFile, log, counters });
    await file?.start();
    if (file !== undefined)
      stops.add('violations file', 2 * FLUSH_TIMEOUT_MS, () => file.stop(FLUSH_TIMEOUT_MS));

    const kernel = await openKernelSide({
      options,
      log,
      failures: metrics.failures,
      signal: termination.signal,
    });
    stops.add('kernel', KERNEL_STOP_MS, () =>
      kernel.close({ release: options.onExit === 'release' && termination.signal.aborted }),
    );
    const agent = createStandaloneAgent({
      ...{ options, kernel, recovered, file, log, metrics },
      writeOut: (text) => out.write(text),
    });
    stops.add('agent', AGENT_STOP_MS, () => agent.stop());
    const socket = createStatusSocket(options.stateDirectory, () => agent.status());
    await socket.start();
    stops.add('status socket', SERVER_STOP_MS, () => socket.stop());
    if (options.metricsAddress !== undefined) {
      const server = createMetricsServer(options.metricsAddress, metrics);
      const port = await server.start();
      stops.add('metrics server', SERVER_STOP_MS, () => server.stop());
      log.info({ host: options.metricsAddress.host, port }, 'metrics are served');
    }
    await agent.start();
    setFlagsFromString(HEAP_FLAGS);
    log.info({}, 'agent is ready');
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

async function recover(file: string): ReturnType<typeof recoverJournal> {
  try {
    return await recoverJournal(file);
  } catch (cause) {
    throw new CommandError(`cannot read the violations file ${file}: ${problemOf(cause)}`, { cause });
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
