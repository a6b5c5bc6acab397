import type { CommandSpec, OptionSpec } from '../src/tree/command-spec.ts';

/** Between these lines of a document stands what {@link commandReference} makes. */
export const REFERENCE_START = '<!-- commands: made by kubectl-plugin/documentation/write.ts -->';
export const REFERENCE_END = '<!-- end of commands -->';

const PROGRAM = 'kubectl runtime-enforcer';

/** Every command in Markdown, from the same table that the command line and its help are made from. */
export function commandReference(root: CommandSpec): string {
  return (root.subcommands ?? []).map((command) => sections(command, PROGRAM)).join('');
}

/** A document with its reference made anew. Throws where it has no place for one. */
export function withReference(document: string, root: CommandSpec): string {
  const start = document.indexOf(REFERENCE_START);
  const end = document.indexOf(REFERENCE_END);
  if (start < 0 || end < start)
    throw new Error(`the document has no lines ${REFERENCE_START} and ${REFERENCE_END}`);
  const before = document.slice(0, start + REFERENCE_START.length);
  return `${before}\n\n${commandReference(root)}${document.slice(end)}`;
}

function sections(command: CommandSpec, parent: string): string {
  const path = `${parent} ${command.name}`;
  const own = command.load === undefined ? '' : section(command, path);
  return own + (command.subcommands ?? []).map((each) => sections(each, path)).join('');
}

function section(
  { summary, details, operands = [], options = [], examples = [] }: CommandSpec,
  path: string,
): string {
  const words = operands.map(({ name, optional = false, repeated = false }) => {
    const word = repeated ? `${name}...` : name;
    return optional ? `[${word}]` : word;
  });
  const title = [path.slice(PROGRAM.length + 1), ...words].join(' ');
  const lines = [`### \`${title}\``, '', `${summary}.${details === undefined ? '' : ` ${details}`}`, ''];
  if (options.length > 0) lines.push(...options.map(optionLine), '');
  if (examples.length > 0) {
    const shown = examples.map(([command, effect]) => `# ${effect}\n${PROGRAM} ${command}`);
    lines.push('```console', shown.join('\n\n'), '```', '');
  }
  return `${lines.join('\n')}\n`;
}

function optionLine({ flags, help }: OptionSpec): string {
  return `- \`${flags}\`: ${help}`;
}
