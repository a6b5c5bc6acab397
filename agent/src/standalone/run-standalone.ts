import { CommandError } from '../commands/command-error.ts';
import { startTelling, type RunContext } from '../commands/run-context.ts';
import { problemOf } from '../node/bounded-file.ts';
import { openKernelSide } from '../node/kernel-side.ts';
import { ownDirectory } from '../node/own-directory.ts';
import { recoverJournal } from '../violations/journal-recovery.ts';
import { createLineFile } from '../violations/line-file.ts';
import { createStandaloneAgent } from './standalone-agent.ts';

/** How long each part of an orderly stop may take; all together less than 5 s. */
const AGENT_STOP_MS = 2_000;
const KERNEL_STOP_MS = 1_000;
const FLUSH_TIMEOUT_MS = 500;
/** How long the agent before may take to end. */
const HANDOVER_MS = 15_000;

/** Starts an agent that takes its policies from a directory. Rejects if it cannot; what was started is in `stops`. */
export async function startStandalone(context: RunContext): Promise<void> {
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

  const kernel = await openKernelSide({
    ...{ options, log, failures: metrics.failures, signal: termination },
    handoverMs: HANDOVER_MS,
  });
  stops.add('kernel', KERNEL_STOP_MS, () =>
    kernel.close({ release: options.onExit === 'release' && termination.aborted }),
  );
  const agent = createStandaloneAgent({
    ...{ options, kernel, recovered, file, log, metrics },
    writeOut: (text) => out.write(text),
  });
  stops.add('agent', AGENT_STOP_MS, () => agent.stop());
  await startTelling(context, () => agent.status());
  await agent.start();
}

async function recover(file: string): ReturnType<typeof recoverJournal> {
  try {
    return await recoverJournal(file);
  } catch (cause) {
    throw new CommandError(`cannot read the violations file ${file}: ${problemOf(cause)}`, { cause });
  }
}
