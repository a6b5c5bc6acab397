import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { LearningState } from '@runtime-enforcer/agent/learning/cluster-learner';
import type { WriterTimings } from '@runtime-enforcer/agent/learning/proposal-writer';
import type { SyntheticPod } from './synthetic-exec.ts';

/** Where a learner finds the API server, and how it behaves. */
export interface LearnerPlace {
  readonly server: string;
  /** PEM in base64. */
  readonly caData: string;
  readonly tokenFile: string;
  readonly nodeName: string;
  /** As `--learning-namespace-selector` takes it. */
  readonly selector: string;
  readonly writer: Partial<WriterTimings>;
}

export interface LearnerCommand {
  readonly execs: readonly (SyntheticPod & { readonly path: string })[];
  /** Again and again, in turn, instead of once each. */
  readonly storm?: { readonly perSecond: number; readonly ms: number };
  readonly stop: boolean;
}

/** What a learner tells after each command. */
export interface LearnerReport {
  readonly counts: Readonly<Record<string, number>>;
  /** Warnings and errors of its log. */
  readonly problems: readonly string[];
  readonly state: LearningState;
  /** Different executables of which it offers evidence. */
  readonly observed: number;
  /** How long the event loop was held without a pause, in processor time, while it did what it was told. */
  readonly loopHeldMs: { readonly p99: number; readonly max: number };
  readonly cpuMs: number;
}

/** A learner in a process of its own. */
export interface LearnerAgent {
  tell(command: Partial<LearnerCommand>): Promise<LearnerReport>;
  /** Lets it write what waits, and end. */
  stop(): Promise<LearnerReport>;
  /** Ends it at once, whatever it does. */
  kill(): void;
}

/** @throws Error when it ends before it is ready */
export async function startLearnerAgent(place: LearnerPlace): Promise<LearnerAgent> {
  const program = join(import.meta.dirname, 'learner-program.ts');
  const child = fork(program, [JSON.stringify(place)], { execArgv: [] });
  await answerOf(child);
  const tell = async (command: Partial<LearnerCommand>): Promise<LearnerReport> => {
    const answer = answerOf(child);
    child.send({ execs: [], stop: false, ...command });
    return (await answer) as LearnerReport;
  };
  return {
    tell,
    stop: async () => await tell({ stop: true }),
    kill: () => void child.kill('SIGKILL'),
  };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const ended = new AbortController();
  const answer = once(child, 'message', { signal: ended.signal });
  const end = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`the learner ended with ${String(code)}`);
  });
  try {
    const [message] = (await Promise.race([answer, end])) as [unknown];
    return message;
  } finally {
    ended.abort();
    await Promise.allSettled([answer, end]);
  }
}
