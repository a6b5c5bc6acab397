import { POLICY_MODES, type PolicyMode } from '@runtime-enforcer/api/workload-policy';
import { nearestName } from './nearest-name.ts';
import { chosenWord, readOptions, refuseOperands, type OptionSpec } from './options.ts';
import { DEFAULT_NRI_SOCKET, DEFAULT_STATE_DIR, readRunOptions, type RunOptions } from './run-options.ts';
import { UsageError } from './usage-error.ts';

const OVERRIDES = ['monitor', 'off', 'clear'] as const;

export interface CommandSpec {
  /** With a leading space, or empty. */
  readonly operands: string;
  readonly help: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
}

const stateDirectory = {
  value: 'DIR',
  help: "the running agent's --state-dir",
  defaultText: DEFAULT_STATE_DIR,
} as const satisfies OptionSpec;

export const COMMANDS = {
  check: {
    operands: '',
    help: 'tell whether this node can run the agent, and what is missing',
    options: {
      'nri-socket-path': { value: 'PATH', help: 'NRI socket to look for', defaultText: DEFAULT_NRI_SOCKET },
    },
  },
  status: {
    operands: '',
    help: 'show what the agent of this node enforces',
    options: { 'state-dir': stateDirectory, json: { help: 'print JSON' } },
  },
  promote: {
    operands: ' FILE',
    help: 'turn the proposals of FILE into policies',
    options: {
      mode: { value: POLICY_MODES.join('|'), help: 'mode of the policies' },
      output: { value: 'FILE', help: 'where to write the policies; - is standard output', defaultText: '-' },
    },
  },
  override: {
    operands: '',
    help: 'hold all policies of this node at monitor, or take them off, until cleared',
    options: { mode: { value: OVERRIDES.join('|'), help: 'what to do' } },
  },
  release: {
    operands: '',
    help: 'take all enforcement off this node, with or without a running agent, until agent resume',
    options: { 'state-dir': stateDirectory },
  },
  resume: {
    operands: '',
    help: 'let the agent enforce again on a node that was released',
    options: { 'state-dir': stateDirectory },
  },
} as const satisfies Record<string, CommandSpec>;
export type CommandName = keyof typeof COMMANDS;

/** What the command line asks for. */
export type Command =
  | { readonly name: 'help'; readonly of?: CommandName }
  | { readonly name: 'version' }
  | { readonly name: 'run'; readonly options: RunOptions }
  | { readonly name: 'check'; readonly nriSocketPath: string }
  | { readonly name: 'status'; readonly stateDirectory: string; readonly format: 'text' | 'json' }
  | { readonly name: 'promote'; readonly file: string; readonly mode: PolicyMode; readonly output: string }
  | { readonly name: 'override'; readonly mode: (typeof OVERRIDES)[number] }
  | { readonly name: 'release' | 'resume'; readonly stateDirectory: string };

/** Reads the command line. Throws a {@link UsageError}. */
export function readCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Command {
  const [first, ...rest] = args;
  const name = first === undefined || first.startsWith('-') ? undefined : commandNamed(first);
  const ownArgs = name === undefined ? args : rest;
  if (ownArgs.includes('--help') || ownArgs.includes('-h')) {
    return { name: 'help', ...(name !== undefined && { of: name }) };
  }
  if (name === undefined) {
    if (first === '--version' || first === '-V') return { name: 'version' };
    return { name: 'run', options: readRunOptions(args, environment) };
  }
  const given = readOptions(rest, COMMANDS[name].options);
  const { values } = given;
  if (name !== 'promote') refuseOperands(given);
  switch (name) {
    case 'check':
      return { name, nriSocketPath: values.get('nri-socket-path') ?? DEFAULT_NRI_SOCKET };
    case 'status':
      return {
        name,
        stateDirectory: values.get('state-dir') ?? DEFAULT_STATE_DIR,
        format: given.flags.has('json') ? 'json' : 'text',
      };
    case 'promote': {
      const [file, second] = given.operands;
      if (file === undefined)
        throw new UsageError('promote needs the file of a proposal: agent promote FILE');
      if (second !== undefined)
        throw new UsageError(`${JSON.stringify(second)} is one file too many; give one`);
      const mode = chosenWord(given, 'mode', POLICY_MODES);
      return { name, file, mode, output: values.get('output') ?? '-' };
    }
    case 'override':
      return { name, mode: chosenWord(given, 'mode', OVERRIDES) };
    case 'release':
    case 'resume':
      return { name, stateDirectory: values.get('state-dir') ?? DEFAULT_STATE_DIR };
  }
}

function commandNamed(word: string): CommandName {
  const known = Object.keys(COMMANDS) as CommandName[];
  const name = known.find((each) => each === word);
  if (name !== undefined) return name;
  const near = nearestName(word, known);
  const hint = near === undefined ? `expected one of ${known.join(', ')}` : `did you mean ${near}?`;
  throw new UsageError(`${JSON.stringify(word)} is not a command; ${hint}`);
}
