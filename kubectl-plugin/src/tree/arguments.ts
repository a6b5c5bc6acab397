import { KUBE_FLAGS } from '../cluster/kube-flags.ts';
import type { CommandSpec } from './command-spec.ts';

const BOOLEAN_VALUE = /^(--[a-z-]+)=(true|false)$/;
const HELP = 'help';
const VERBOSITY = /^(?:-v=?|--v=)(\d{1,2})$/;

/**
 * Arguments in the form that the command-line library reads, from what kubectl's own flags accept besides: a switch
 * with a value (`--watch=true`), `--dry-run` without one, `-v 6`, which is a level where it stands before a number
 * and the version otherwise, and `help policy list`.
 */
export function normalizeArguments(args: readonly string[], root: CommandSpec): string[] {
  const switches = switchNames(args, root);
  const result: string[] = [];
  const asked = askedHelp(args, root);
  if (asked !== undefined) return [...asked, '--help'];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? '';
    if (arg === '--') return [...result, ...args.slice(index)];
    const [, name = '', value] = BOOLEAN_VALUE.exec(arg) ?? [];
    const level = VERBOSITY.exec(arg)?.[1];
    if (arg === '--dry-run') result.push('--dry-run=server');
    else if (switches.has(name)) result.push(...switchOf(name, value === 'true', switches));
    else if (level !== undefined) result.push(`--verbosity=${level}`);
    else if ((arg === '-v' || arg === '--v') && /^\d{1,2}$/.test(args[index + 1] ?? '')) {
      result.push(`--verbosity=${args[++index] ?? ''}`);
    } else result.push(arg);
  }
  return result;
}

/** Of `help policy list`, and of `policy help list`, the words besides; undefined where help is not the command. */
function askedHelp(args: readonly string[], root: CommandSpec): readonly string[] | undefined {
  const [first = '', second] = args;
  if (first === HELP) return args.slice(1);
  const isGroup = root.subcommands?.some(({ name, load }) => name === first && load === undefined) ?? false;
  return isGroup && second === HELP ? [first, ...args.slice(2)] : undefined;
}

/** `--wait=false` is `--no-wait` where there is such a switch, and otherwise as if it were not given. */
function switchOf(name: string, isOn: boolean, switches: ReadonlySet<string>): string[] {
  if (isOn) return [name];
  const opposite = name.replace('--', '--no-');
  return switches.has(opposite) ? [opposite] : [];
}

/** Whether a word is one of kubectl's flags, and the next word its value. */
function takesValue(word: string): boolean {
  return KUBE_FLAGS.some(({ flags }) => flags.includes('<') && flags.split(/[ ,]+/).includes(word));
}

/** The long names of the options that take no value, of the command that the words without a dash lead to. */
function switchNames(args: readonly string[], root: CommandSpec): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (flags: string): void => {
    const name = /--[a-z-]+/.exec(flags)?.[0];
    if (name !== undefined && !/[<[]/.test(flags)) names.add(name);
  };
  for (const { flags } of KUBE_FLAGS) add(flags);
  let command = root;
  for (const [index, arg] of args.entries()) {
    const next = command.subcommands?.find(({ name }) => name === arg);
    if (next === undefined || takesValue(args[index - 1] ?? '')) continue;
    command = next;
    for (const { flags } of command.options ?? []) add(flags);
  }
  return names;
}
