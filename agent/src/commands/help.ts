import type { OptionSpec } from './options.ts';
import { CLUSTER_OPTIONS } from './cluster-options.ts';
import { NODE_OPTIONS, STANDALONE_OPTIONS } from './run-options.ts';
import { COMMANDS } from './command.ts';

const HELP_COLUMN = 30;

/** What `agent --help` prints. */
export function helpText(): string {
  return `Usage: agent [options]
       agent --policy-dir DIR [options]
       agent COMMAND [options]

Decides in the Linux kernel which executables each container of this node may start. Policies come from the API server
of a Kubernetes cluster, or from the files of a directory.

Options on Kubernetes:
${optionLines(CLUSTER_OPTIONS, {})}
Options without Kubernetes:
${optionLines(STANDALONE_OPTIONS, {})}
Options:
${optionLines(NODE_OPTIONS)}
Environment:
${line('NRI_FAILOPEN=true', 'let containers start unenforced that cannot be bound to the policy they name')}
${line('POD_NAME, POD_NAMESPACE', "the agent's pod, whose DaemonSet's deletion releases the node")}

Commands:
${Object.entries(COMMANDS)
  .map(([name, { operands, help }]) => line(`${name}${operands}`, help))
  .join('\n')}

agent COMMAND --help tells the options of a command. On Kubernetes logs go to standard output; without it logs go to
standard error and violations to standard output. All are JSON lines. Exit codes: 0 done, 1 failed, 2 the command line
was not understood.
`;
}

/** What `agent COMMAND --help` prints. */
export function commandHelpText(name: keyof typeof COMMANDS): string {
  const { operands, help, options } = COMMANDS[name];
  return `Usage: agent ${name}${operands} [options]

${help.charAt(0).toUpperCase()}${help.slice(1)}.

Options:
${optionLines(options)}`;
}

function optionLines(
  options: Readonly<Record<string, OptionSpec>>,
  more: Readonly<Record<string, OptionSpec>> = { help: { help: 'print this' } },
): string {
  return Object.entries({ ...options, ...more })
    .map(([name, spec]: [string, OptionSpec]) => {
      const standard = spec.defaultText === undefined ? '' : ` [${spec.defaultText}]`;
      return `${line(`--${name}${spec.value === undefined ? '' : ` ${spec.value}`}`, spec.help + standard)}\n`;
    })
    .join('');
}

function line(left: string, right: string): string {
  return left.length < HELP_COLUMN
    ? `  ${left.padEnd(HELP_COLUMN)}${right}`
    : `  ${left}\n  ${' '.repeat(HELP_COLUMN)}${right}`;
}
