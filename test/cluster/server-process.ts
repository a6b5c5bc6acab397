import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';

const TERM_GRACE_MS = 3_000;
const LOG_TAIL_CHARACTERS = 4_000;

/** A program that serves until it is stopped, and that never outlives this process. */
export interface ServerProcess {
  readonly pid: number;
  /** @throws Error with the end of its log, when it has ended without having been stopped */
  assertRunning(): void;
  /** Asks it to end, and after 3 s, or at once with SIGKILL, makes it. Nothing happens the second time. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Stops it where it is, as a machine without processor time does. */
  pause(): void;
  resume(): void;
  /** The end of what it wrote. */
  logTail(): Promise<string>;
}

/** Starts a program whose output goes to a log file. The kernel ends it when this process ends in whatever way. */
export function startServer(name: string, argv: readonly string[], logFile: string): ServerProcess {
  const log = createWriteStream(logFile, { flags: 'a' });
  const child: ChildProcess = spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  const ended = once(child, 'close').then(() => log.end());
  let trouble: string | undefined;
  ended.catch((error: unknown) => (trouble = String(error)));
  const hasEnded = (): boolean =>
    trouble !== undefined || child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid ?? 0,
    assertRunning() {
      if (!hasEnded()) return;
      const how = trouble ?? `with ${child.signalCode ?? `code ${String(child.exitCode)}`}`;
      throw new Error(`${name} ended (${how}); its log is ${logFile}`);
    },
    async stop(signal = 'SIGTERM') {
      if (hasEnded()) return;
      child.kill('SIGCONT');
      child.kill(signal);
      const kill = setTimeout(() => child.kill('SIGKILL'), TERM_GRACE_MS);
      await ended.catch(() => undefined);
      clearTimeout(kill);
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    logTail: async () => (await readFile(logFile, 'utf8').catch(() => '')).slice(-LOG_TAIL_CHARACTERS),
  };
}
