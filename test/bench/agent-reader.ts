import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';

/** Which agent to read, and as whom. */
export interface ReadingOrder {
  readonly port: number;
  /** The names that its certificate holds. */
  readonly podName: string;
  readonly namespace: string;
  /** The directory of the certificates that a controller shows. */
  readonly certificates: string;
}

export type ReadingAnswer = { readonly policies: number } | { readonly error: string };

/**
 * A process that reads agents as a controller does: the one that measures has no time for that. A controller is on
 * another node as a rule, so that it gets the time that nobody else wants.
 */
export interface AgentReader {
  /** Reads all that the agent tells a controller for the first time. Resolves with how many policies those are. */
  readAll(order: ReadingOrder): Promise<number>;
  stop(): void;
}

/** Starts the process at the first reading. */
export function startAgentReader(): AgentReader {
  let child: ChildProcess | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const ask = async (order: ReadingOrder): Promise<number> => {
    child ??= fork(join(import.meta.dirname, 'agent-reader-process.ts'), {
      ...{ stdio: 'inherit', execPath: 'chrt', execArgv: ['--idle', '0', process.execPath] },
    });
    const asked = child;
    const answer = await new Promise<ReadingAnswer>((resolve, reject) => {
      asked.once('message', (message) => resolve(message as ReadingAnswer));
      asked.once('exit', (code) => reject(new Error(`the reader of the bench ended with code ${code}`)));
      asked.send(order);
    });
    asked.removeAllListeners('exit');
    if ('error' in answer) throw new Error(answer.error);
    return answer.policies;
  };
  return {
    readAll: async (order) => {
      const reading = last.then(async () => await ask(order));
      last = reading.catch(() => undefined);
      return await reading;
    },
    stop: () => void child?.kill('SIGKILL'),
  };
}
