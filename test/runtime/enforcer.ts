import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { startAgent, type AgentProcess } from './agent-process.ts';
import { eventually } from './eventually.ts';
import { removePolicy, writePolicy, writePolicyText, type PolicySpec } from './policy-files.ts';

const STATE_ROOT = '/run/enforcer';

/** A violation as the agent writes it to its file, as far as the tests look at it. */
export interface ViolationLine {
  readonly event: 'policy_violation';
  readonly namespace: string;
  readonly policyName: string;
  readonly podName: string;
  readonly containerName: string;
  readonly executablePath: string;
  readonly action: 'monitor' | 'protect';
  readonly occurrences: number;
  readonly reason?: string;
  readonly origin?: string;
}

/** A standalone agent with directories of its own. */
export interface Enforcer {
  readonly policyDirectory: string;
  readonly learnDirectory: string;
  readonly violationsFile: string;
  /** The agent that runs now; a restart replaces it. */
  agent: AgentProcess;
  /** Starts an agent on the same directories; the one before must have ended. */
  restart(extra?: readonly string[], env?: Readonly<Record<string, string>>): Promise<AgentProcess>;
  /** Writes a policy and waits until the agent has it in the kernel. */
  apply(policy: PolicySpec): Promise<void>;
  /** Writes any text as a policy's file and returns at once. */
  write(name: string, text: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** All lines about violations so far, oldest first; a later line of the same violation has a higher count. */
  violations(): Promise<readonly ViolationLine[]>;
  /** Waits for a violation that holds all the given fields. */
  violation(fields: Partial<ViolationLine>, budgetMs?: number): Promise<ViolationLine>;
}

/**
 * Starts an agent on empty directories and waits until containerd asks it.
 *
 * @param name keeps the directories of several enforcers in one guest apart
 */
export async function startEnforcer(
  name: string,
  extra: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Enforcer> {
  const base = join(STATE_ROOT, name);
  await rm(base, { recursive: true, force: true });
  const policyDirectory = join(base, 'policies');
  const learnDirectory = join(base, 'learned');
  const violationsFile = join(base, 'violations.jsonl');
  await mkdir(policyDirectory, { recursive: true });
  await mkdir(learnDirectory, { recursive: true });
  const args = [
    ...['--policy-dir', policyDirectory],
    ...['--learn-dir', learnDirectory],
    ...['--violations-file', violationsFile],
  ];
  const violations = async (): Promise<readonly ViolationLine[]> => await readViolations(violationsFile);
  const enforcer: Enforcer = {
    policyDirectory,
    learnDirectory,
    violationsFile,
    agent: await startAgent([...args, ...extra], env),
    restart: async (more = extra, moreEnv = env) => {
      enforcer.agent = await startAgent([...args, ...more], moreEnv);
      return enforcer.agent;
    },
    apply: async (policy) => {
      const before = enforcer.agent.log.length;
      await writePolicy(policyDirectory, policy);
      await policyLoaded(enforcer.agent, policy, before);
    },
    write: async (file, text) => await writePolicyText(policyDirectory, file, text),
    remove: async (file) => await removePolicy(policyDirectory, file),
    violations,
    violation: async (fields, budgetMs) =>
      await eventually(
        `a violation with ${JSON.stringify(fields)}`,
        async () => (await violations()).find((line) => holds(line, fields)),
        budgetMs,
      ),
  };
  return enforcer;
}

async function policyLoaded(agent: AgentProcess, policy: PolicySpec, from: number): Promise<void> {
  const policyName = `${policy.namespace ?? 'default'}/${policy.name}`;
  await agent.waitFor({ policy: policyName, msg: 'policy loaded' }, undefined, from);
}

async function readViolations(file: string): Promise<readonly ViolationLine[]> {
  let text = '';
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
  }
  // The last line may be half written.
  const lines = text.split('\n').slice(0, -1);
  return lines
    .map((line) => JSON.parse(line) as ViolationLine | { readonly event: 'policy_violation_overflow' })
    .filter((line) => line.event === 'policy_violation');
}

function holds(line: ViolationLine, fields: Partial<ViolationLine>): boolean {
  return Object.entries(fields).every(([name, value]) => line[name as keyof ViolationLine] === value);
}
