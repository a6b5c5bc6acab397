import { Command, CommanderError, Option } from 'commander';
import { KUBE_FLAGS, type FlagSpec, type KubeFlags } from './cluster/kube-flags.ts';
import { commandOptions, type CommandContext } from './command-context.ts';
import { EXIT_OK, type ExitCode } from './exit-code.ts';
import { UsageError } from './plugin-error.ts';
import { PLUGIN_VERSION } from './plugin-version.ts';
import type { Terminal } from './terminal.ts';
import { normalizeArguments } from './tree/arguments.ts';
import type { CommandSpec, OperandSpec } from './tree/command-spec.ts';

const HELP_CODES = new Set(['commander.help', 'commander.helpDisplayed', 'commander.version']);
const USAGE_PREFIX = /^error: /;

/** Makes what a command works with, from kubectl's flags as they were given. */
export type OpenContext = (flags: KubeFlags) => CommandContext;

/**
 * Runs a command line.
 *
 * @throws UsageError when it cannot be understood, and what the command throws
 */
export async function runProgram(
  root: CommandSpec,
  args: readonly string[],
  terminal: Pick<Terminal, 'write'>,
  openContext: OpenContext,
): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT_OK;
  const program = new Command(root.name)
    .description(`${root.summary}.`)
    .version(PLUGIN_VERSION, '-v, --version', 'print the version of the plugin')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .exitOverride()
    .configureOutput({ writeOut: terminal.write, writeErr: () => undefined })
    .addHelpText('after', FOOTER);
  for (const flag of KUBE_FLAGS) program.addOption(optionOf(flag).hideHelp(!flag.flags.startsWith('-n')));
  for (const spec of root.subcommands ?? []) add(program, spec);

  function add(parent: Command, spec: CommandSpec): void {
    const command = parent
      .command(spec.name)
      .summary(spec.summary)
      .description([`${spec.summary}.`, ...(spec.details === undefined ? [] : [spec.details])].join('\n\n'))
      .helpCommand(false);
    for (const operand of spec.operands ?? []) command.argument(argumentOf(operand));
    for (const option of spec.options ?? []) command.addOption(optionOf(option));
    if (spec.examples !== undefined) command.addHelpText('after', examplesText(spec.examples));
    for (const subcommand of spec.subcommands ?? []) add(command, subcommand);
    const { load } = spec;
    if (load === undefined) return;
    command.action(async () => {
      const context = openContext(kubeFlags(program.opts()));
      // An option that a group has as well is read by the group.
      exitCode = await (await load())(context, command.args, commandOptions(command.optsWithGlobals()));
    });
  }

  try {
    await program.parseAsync(normalizeArguments(args, root), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (!HELP_CODES.has(error.code)) throw usageError(error, program, args);
    // A group without a command: its help, where it can be read page by page.
    if (error.code === 'commander.help') terminal.write(commandOf(program, args).helpInformation());
  }
  return exitCode;
}

const FOOTER = `
Every command has --help with examples, and takes kubectl's configuration flags:
see kubectl runtime-enforcer options.

Exit codes: 0 done, 1 failed, 2 the command line was not understood,
3 found what was looked for (a difference, a violation, a failed test, a defect).
`;

function optionOf({ flags, help, repeated = false }: FlagSpec | Omit<FlagSpec, 'completes'>): Option {
  const option = new Option(flags, help);
  return repeated
    ? option.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value])
    : option;
}

function argumentOf({ name, optional = false, repeated = false }: OperandSpec): string {
  const inner = repeated ? `${name}...` : name;
  return optional ? `[${inner}]` : `<${inner}>`;
}

function examplesText(examples: NonNullable<CommandSpec['examples']>): string {
  const lines = examples.map(([command, effect]) => `  # ${effect}\n  kubectl runtime-enforcer ${command}\n`);
  return `\nExamples:\n${lines.join('\n')}`;
}

function usageError(error: CommanderError, program: Command, args: readonly string[]): UsageError {
  const [message = '', ...more] = error.message.replace(USAGE_PREFIX, '').split('\n');
  const command = commandOf(program, args);
  const remedy = `see ${fullName(command)} --help`;
  const elsewhere = error.code === 'commander.unknownCommand' ? namesakes(command, message) : [];
  if (elsewhere.length === 0) return new UsageError([message, ...more].join(' '), remedy);
  return new UsageError(`${message} (Did you mean ${elsewhere.join(' or ')}?)`, remedy);
}

/** Commands that are named as the unknown one, in the groups of a command. */
function namesakes({ commands }: Command, message: string): readonly string[] {
  return commands.flatMap((group) =>
    group.commands
      .filter((each) => message.includes(`'${each.name()}'`))
      .map((each) => `${group.name()} ${each.name()}`),
  );
}

/** The command that the words without a dash lead to. */
function commandOf(program: Command, args: readonly string[]): Command {
  let command = program;
  for (const arg of args) {
    const next = command.commands.find((each) => each.name() === arg);
    if (next !== undefined) command = next;
  }
  return command;
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function kubeFlags(given: Readonly<Record<string, unknown>>): KubeFlags {
  const { verbosity, ...flags } = given;
  return {
    ...(flags as KubeFlags),
    ...(typeof verbosity === 'string' && { verbosity: Number(verbosity) }),
  };
}
