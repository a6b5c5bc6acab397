import { CommandError } from '../commands/command-error.ts';
import { startMetricsEndpoint, startStatusSocket, type RunContext } from '../commands/run-context.ts';
import { problemOf } from '../node/bounded-file.ts';
import { OwnerBusyError, type Ownership } from '../kernel/owner-lock.ts';
import type { findNodeFit, FitNode } from '../node/kernel-side.ts';
import { readReleaseMark, releasedSentence, untilReleaseMark } from '../node/release-mark.ts';
import { ownDirectory } from '../node/own-directory.ts';
import { recoverJournal } from '../violations/journal-recovery.ts';
import { createLineFile } from '../violations/line-file.ts';
import { createStandaloneAgent } from './standalone-agent.ts';

/** How long each part of an orderly stop may take; all together less than 5 s. */
const AGENT_STOP_MS = 2_000;
const KERNEL_STOP_MS = 1_000;
const SERVER_STOP_MS = 200;
const FLUSH_TIMEOUT_MS = 500;
/** How long the agent before may take to end. */
const HANDOVER_MS = 15_000;

/** Starts an agent that takes its policies from a directory. Rejects if it cannot; what was started is in `stops`. */
export async function startStandalone(context: RunContext, findFit: typeof findNodeFit): Promise<void> {
  const { options, log, metrics, out, stops, termination } = context;
  const { violationsFile, learnDirectory } = options;
  if (learnDirectory !== undefined) await ownDirectory(learnDirectory, '--learn-dir', 0o755);
  const recovered = violationsFile === undefined ? [] : await recover(violationsFile);
  const file =
    violationsFile === undefined
      ? undefined
      : createLineFile({ file: violationsFile, log, counters: metrics.counters });
  await file?.start();
  if (file !== undefined)
    stops.add('violations file', 2 * FLUSH_TIMEOUT_MS, () => file.stop(FLUSH_TIMEOUT_MS));

  await waitWhileReleased(context);
  const fit = findFit({ options, log, failures: metrics.failures });
  const ownership = await becomeOwner(fit, context);
  stops.add('ownership', SERVER_STOP_MS, () => {
    ownership.release();
    return Promise.resolve();
  });
  const kernel = await fit.open();
  stops.add('kernel', KERNEL_STOP_MS, () =>
    kernel.close({ release: options.onExit === 'release' && termination.aborted }),
  );
  const agent = createStandaloneAgent({
    ...{ options, kernel, recovered, file, log, metrics },
    writeOut: (text) => out.write(text),
  });
  stops.add('agent', AGENT_STOP_MS, () => agent.stop());
  await startStatusSocket(context, stops, () => agent.status());
  await startMetricsEndpoint(context);
  await agent.start();
}

async function recover(file: string): ReturnType<typeof recoverJournal> {
  try {
    return await recoverJournal(file);
  } catch (cause) {
    throw new CommandError(`cannot read the violations file ${file}: ${problemOf(cause)}`, { cause });
  }
}

async function waitWhileReleased({ options, log, termination }: RunContext): Promise<void> {
  const mark = await readReleaseMark(options.stateDirectory);
  if (mark === undefined) return;
  log.error({}, releasedSentence(mark));
  await untilReleaseMark('removed', options.stateDirectory, termination);
  termination.throwIfAborted();
}

async function becomeOwner(
  fit: FitNode,
  { log, termination }: RunContext,
): Promise<Pick<Ownership, 'release'>> {
  const signal = AbortSignal.any([termination, AbortSignal.timeout(HANDOVER_MS)]);
  try {
    return await fit.own({ signal, onWait: (sentence) => log.warn({}, sentence) });
  } catch (error) {
    if (termination.aborted || !signal.aborted) throw error;
    // Says who it is.
    return await fit.ownNow().catch((cause: unknown) => {
      throw cause instanceof OwnerBusyError ? new CommandError(cause.message, { cause }) : cause;
    });
  }
}
