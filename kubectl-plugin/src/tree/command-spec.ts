import type { FlagSpec } from '../cluster/kube-flags.ts';
import type { RunCommand } from '../command-context.ts';

/** What the cluster, or the kubeconfig, can complete a word with. */
export type CompletionSource =
  | 'policies'
  | 'proposals'
  | 'policyContainers'
  | 'allowablePaths'
  | 'allowedPaths'
  | 'violationIds'
  | 'workloads'
  | 'boundWorkloads'
  | 'pods'
  | 'podContainers'
  | 'namespaces'
  | 'contexts'
  | 'clusters'
  | 'users'
  | 'files';

/** A word that a command takes by its place. */
export interface OperandSpec {
  /** In capitals: `POLICY`. */
  readonly name: string;
  readonly optional?: boolean;
  /** Takes all further words; only the last operand can. */
  readonly repeated?: boolean;
  readonly completes?: CompletionSource;
}

export interface OptionSpec extends Omit<FlagSpec, 'completes'> {
  readonly completes?: CompletionSource | readonly string[];
}

/** A command, or a group of commands, as the command line, its help and its completion know it. */
export interface CommandSpec {
  readonly name: string;
  /** One line without a full stop. */
  readonly summary: string;
  /** What else its help says. */
  readonly details?: string;
  readonly operands?: readonly OperandSpec[];
  readonly options?: readonly OptionSpec[];
  /** What stands behind `kubectl runtime-enforcer`, each with what it does. */
  readonly examples?: readonly (readonly [command: string, effect: string])[];
  readonly subcommands?: readonly CommandSpec[];
  /** Loads the command when it is run. */
  readonly load?: () => Promise<RunCommand>;
}

export const DRY_RUN: OptionSpec = {
  flags: '--dry-run <how>',
  help: 'only try it: "server" (or no value) asks the server, "client" sends nothing',
  completes: ['none', 'client', 'server'],
};
export const ALL_NAMESPACES: OptionSpec = { flags: '-A, --all-namespaces', help: 'look in all namespaces' };
export const NO_HEADERS: OptionSpec = { flags: '--no-headers', help: 'leave the titles of columns out' };
export const SELECTOR: OptionSpec = {
  flags: '-l, --selector <selector>',
  help: 'only what has these labels',
};
export const FILE: OptionSpec = {
  flags: '-f, --filename <file>',
  help: 'a file with policies; - for standard input',
  completes: 'files',
};

export function outputOption(...formats: readonly string[]): OptionSpec {
  return { flags: '-o, --output <format>', help: `one of ${formats.join(', ')}`, completes: formats };
}

export const ALL_FORMATS = ['table', 'wide', 'json', 'yaml', 'name', 'jsonpath=TEMPLATE'] as const;
export const DATA_FORMATS = ['table', 'json', 'yaml', 'jsonpath=TEMPLATE'] as const;
