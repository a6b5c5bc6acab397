import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { eventually } from './eventually.ts';

/** The bundled agent in a guest. */
export const AGENT_PROGRAM = '/run/payload/agent/main.mjs';

const CONNECTED = 'connected to the container runtime';
const START_BUDGET_MS = 30_000;

/** One line of JSON on the agent's standard output: a log record or a violation. */
export type AgentRecord = Readonly<Record<string, unknown>>;

export interface AgentProcess {
  readonly pid: number;
  /** Everything it wrote so far, oldest first. */
  readonly records: readonly AgentRecord[];
  /** The lines of standard output that are not JSON, and all of standard error. */
  readonly otherLines: readonly string[];
  /** Waits for a record, also one from before the call, that holds all the given fields. */
  waitFor(fields: AgentRecord, budgetMs?: number): Promise<AgentRecord>;
  /** Sends the signal and, if it ends the agent, waits for its end. */
  signal(name: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
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
  const records: AgentRecord[] = [];
  const otherLines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const record = parseRecord(line);
    if (record === undefined) otherLines.push(line);
    else records.push(record);
  });
  createInterface({ input: child.stderr }).on('line', (line) => otherLines.push(line));
  return {
    pid: child.pid ?? 0,
    records,
    otherLines,
    waitFor: (fields, budgetMs) =>
      eventually(
        () => `the agent writes ${JSON.stringify(fields)}; its last lines:\n${tail(records, otherLines)}`,
        () => records.find((record) => holds(record, fields)),
        budgetMs,
      ),
    signal: async (name) => await sendSignal(child, name),
    get exitCode() {
      return child.exitCode ?? undefined;
    },
  };
}

/** Starts the agent and waits until the container runtime asks it about containers. */
export async function startAgent(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<AgentProcess> {
  const agent = spawnAgent(args, env);
  await agent.waitFor({ msg: CONNECTED }, START_BUDGET_MS);
  return agent;
}

/** Runs one of the agent's commands to its end. */
export async function runAgentCommand(
  args: readonly string[],
): Promise<{ exitCode: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [AGENT_PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr] = await Promise.all([child.stdout.toArray(), child.stderr.toArray()]);
  const [exitCode] = await ended;
  return { exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

function holds(record: AgentRecord, fields: AgentRecord): boolean {
  return Object.entries(fields).every(([name, value]) => record[name] === value);
}

function parseRecord(line: string): AgentRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as AgentRecord) : undefined;
  } catch {
    return undefined;
  }
}

function tail(records: readonly AgentRecord[], otherLines: readonly string[]): string {
  return [...records.slice(-10).map((record) => JSON.stringify(record)), ...otherLines.slice(-10)].join('\n');
}

async function sendSignal(child: ChildProcess, name: NodeJS.Signals): Promise<void> {
  const running = child.exitCode === null && child.signalCode === null;
  if (!running) return;
  const ended = once(child, 'exit');
  child.kill(name);
  if (name === 'SIGTERM' || name === 'SIGKILL') await ended;
}
