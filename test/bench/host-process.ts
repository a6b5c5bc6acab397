import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { NODE_ENVIRONMENT } from '../../images/node-runtime.ts';

const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 10_000;
const TAIL_LINES = 20;
const READY_MESSAGE = 'agent is ready';

/** A line of the agent's log. */
export interface LogLine {
  readonly msg: string;
  readonly port?: number;
  readonly policy?: string;
  readonly generation?: number;
}

/** The process of an agent. */
export interface HostProcess {
  /** When it was started, as `performance.now()` tells time. */
  readonly startedMs: number;
  /** The first line of its log that says this. Rejects with the end of the log if none comes. */
  line(message: string): Promise<LogLine>;
  /** Resolved when the log says that it is ready; rejects like {@link line}. */
  ready(): Promise<void>;
  /** Resident memory in bytes, now. */
  residentBytes(): Promise<number>;
  /** Ends it in order, or by force when that takes too long. */
  stop(): Promise<void>;
}

/**
 * Starts an agent that does not outlive this process.
 *
 * @param options.command the program with its arguments
 * @param options.logsTo where its log goes; the other output is not read
 * @param options.onLine told every line of the log when it arrives
 */
export function startHostProcess(options: {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logsTo: 'stdout' | 'stderr';
  readonly onLine?: (line: LogLine) => void;
}): HostProcess {
  const { command, env, logsTo, onLine } = options;
  const startedMs = performance.now();
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...command], {
    env: { ...process.env, ...NODE_ENVIRONMENT, ...env },
    stdio: ['ignore', logsTo === 'stdout' ? 'pipe' : 'ignore', 'pipe'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const tail: string[] = [];
  const said = new Map<string, PromiseWithResolvers<LogLine>>();
  const awaited = (message: string): PromiseWithResolvers<LogLine> => {
    const known = said.get(message) ?? Promise.withResolvers<LogLine>();
    said.set(message, known);
    return known;
  };
  const take = (text: string): void => {
    tail.push(text);
    if (tail.length > TAIL_LINES) tail.shift();
    const line = logLine(text);
    if (line === undefined) return;
    awaited(line.msg).resolve(line);
    onLine?.(line);
  };
  for (const output of [child.stdout, child.stderr])
    if (output !== null) createInterface({ input: output }).on('line', take);

  const line = async (message: string): Promise<LogLine> => {
    const { promise, reject } = awaited(message);
    const fail = (how: string): void =>
      reject(new Error(`the agent ${how} "${message}": ${tail.join('\n')}`));
    const timer = setTimeout(() => fail('does not come to'), READY_TIMEOUT_MS);
    void ended.then(() => fail('ended before'));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    ...{ startedMs, line },
    async ready() {
      await line(READY_MESSAGE);
    },
    residentBytes: () => residentBytes(child.pid ?? 0),
    async stop() {
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
      child.kill('SIGTERM');
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Undefined for what is none. */
function logLine(text: string): LogLine | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const line = JSON.parse(text) as LogLine;
    return typeof line.msg === 'string' ? line : undefined;
  } catch {
    return undefined;
  }
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no resident memory`);
  return Number(kib) * 1024;
}

/** The value of the sample with this name and labels in the text of Prometheus metrics. Throws an Error for none. */
export function sampleOf(text: string, sample: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `));
  if (line === undefined) throw new Error(`the agent has no metric ${sample}:\n${text}`);
  return Number(line.slice(sample.length + 1));
}
