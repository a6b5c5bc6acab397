import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { eventually } from './eventually.ts';

/** The bundled agent in a guest. */
export const AGENT_PROGRAM = '/run/payload/agent/agent.mjs';

const READY = 'agent is ready';
/** Most of a minute is spent in a guest that shares its machine with as many again as it has CPUs. */
const START_BUDGET_MS = 150_000;
const TAIL_LINES = 12;

/** One line of the agent's log, which is JSON: on its standard error, or in a cluster on its standard output. */
export type LogRecord = Readonly<Record<string, unknown>>;

export interface AgentProcess {
  readonly pid: number;
  /** Everything it logged so far, oldest first. */
  readonly log: readonly LogRecord[];
  /** The lines of standard error that are not JSON: what a person reads when it cannot start. */
  readonly messages: readonly string[];
  /** The lines of standard output: a violation each. */
  readonly output: readonly string[];
  /** Waits for a record that holds all the given fields, among those from `from` on: also from before the call. */
  waitFor(fields: LogRecord, budgetMs?: number, from?: number): Promise<LogRecord>;
  /** Waits for a record whose text holds all the given ones, among those from `from` on. */
  waitForText(texts: readonly string[], from?: number): Promise<LogRecord>;
  /** Sends the signal and, if it is one that ends the agent, waits for its end. */
  signal(name: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** Resolves when it has ended and all that it wrote is here. */
  readonly ended: Promise<void>;
  /** The exit code, or undefined while it runs or if a signal ended it. */
  readonly exitCode: number | undefined;
}

/** Starts the agent with the given arguments, and leaves it to the caller to wait for what it says. */
export function spawnAgent(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): AgentProcess {
  const child = spawn(process.execPath, [AGENT_PROGRAM, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: LogRecord[] = [];
  const messages: string[] = [];
  const output: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    // In a cluster the agent logs there; only its log names a component.
    const record = parseRecord(line);
    if (record?.['component'] === undefined) output.push(line);
    else log.push(record);
  });
  createInterface({ input: child.stderr }).on('line', (line) => {
    const record = parseRecord(line);
    if (record === undefined) messages.push(line);
    else log.push(record);
  });
  return {
    pid: child.pid ?? 0,
    log,
    messages,
    output,
    waitFor: (fields, budgetMs, from = 0) =>
      eventually(
        () => `the agent logs ${JSON.stringify(fields)}; its last lines:\n${tail(log, messages)}`,
        () => log.slice(from).find((record) => holds(record, fields)),
        budgetMs,
      ),
    waitForText: (texts, from = 0) =>
      eventually(
        () => `the agent logs ${texts.join(' and ')}; its last lines:\n${tail(log, messages)}`,
        () => log.slice(from).find((record) => texts.every((text) => JSON.stringify(record).includes(text))),
      ),
    ended: once(child, 'close').then(() => undefined),
    signal: async (name) => await sendSignal(child, name),
    get exitCode() {
      return child.exitCode ?? undefined;
    },
  };
}

/**
 * Starts the agent and waits until it has taken over what runs and is asked about what starts. One that does not get
 * there is ended: it would keep the node from the next one.
 */
export async function startAgent(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<AgentProcess> {
  const agent = spawnAgent(args, env);
  const ended = agent.ended.then(() => {
    throw new Error(`the agent ended before it was ready:\n${tail(agent.log, agent.messages)}`);
  });
  try {
    await Promise.race([agent.waitFor({ msg: READY }, START_BUDGET_MS), ended]);
    return agent;
  } catch (cause) {
    await agent.signal('SIGKILL');
    throw cause;
  }
}

/** Runs one of the agent's commands to its end. */
export async function runAgentCommand(
  args: readonly string[],
): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [AGENT_PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
  const [exitCode] = await ended;
  return { exitCode, stdout, stderr };
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += chunk.toString();
  return text;
}

function holds(record: LogRecord, fields: LogRecord): boolean {
  return Object.entries(fields).every(([name, value]) => record[name] === value);
}

function parseRecord(line: string): LogRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as LogRecord) : undefined;
  } catch {
    return undefined;
  }
}

function tail(log: readonly LogRecord[], messages: readonly string[]): string {
  const records = log.slice(-TAIL_LINES).map((record) => JSON.stringify(record));
  return [...records, ...messages.slice(-TAIL_LINES)].join('\n');
}

async function sendSignal(child: ChildProcess, name: NodeJS.Signals): Promise<void> {
  const running = child.exitCode === null && child.signalCode === null;
  if (!running) return;
  const ended = once(child, 'exit');
  child.kill(name);
  if (name === 'SIGTERM' || name === 'SIGKILL') await ended;
}
