import { KUBE_FLAGS } from '../cluster/kube-flags.ts';
import type { CommandSpec, CompletionSource, OptionSpec } from '../tree/command-spec.ts';

/** Something to complete a word with. */
export interface Candidate {
  readonly word: string;
  readonly description?: string;
}

/** What the word at the cursor can be. */
export interface Completable {
  /** The beginning that is typed already. */
  readonly prefix: string;
  readonly candidates: readonly Candidate[];
  /** What has to be asked for. */
  readonly source?: CompletionSource;
  /** Words that the command has been given so far. */
  readonly operands: readonly string[];
  /** Values of the options so far, by long name without dashes. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

interface KnownOption {
  readonly long: string;
  readonly short: string | undefined;
  readonly takesValue: boolean;
  readonly spec: OptionSpec;
}

/**
 * What the last of the words on a command line can become.
 *
 * @param words behind `kubectl runtime-enforcer`; the last one may be empty
 */
export function completable(words: readonly string[], root: CommandSpec): Completable {
  const prefix = words.at(-1) ?? '';
  let command = root;
  const operands: string[] = [];
  const values = new Map<string, string[]>();
  const used = new Set<string>();
  let pending: KnownOption | undefined;
  let onlyOperands = false;
  for (const word of words.slice(0, -1)) {
    if (pending !== undefined) {
      values.set(pending.long, [...(values.get(pending.long) ?? []), word]);
      pending = undefined;
    } else if (onlyOperands || !word.startsWith('-') || word === '-') {
      const next = operands.length === 0 ? command.subcommands?.find(({ name }) => name === word) : undefined;
      if (next === undefined) operands.push(word);
      else command = next;
    } else if (word === '--') {
      onlyOperands = true;
    } else {
      const equals = word.indexOf('=');
      const option = findOption(command, equals < 0 ? word : word.slice(0, equals));
      if (option === undefined) continue;
      used.add(option.long);
      if (!option.takesValue) continue;
      if (equals < 0) pending = option;
      else values.set(option.long, [...(values.get(option.long) ?? []), word.slice(equals + 1)]);
    }
  }

  const given = { operands, values };
  if (pending !== undefined) return { ...given, prefix, ...valueOf(pending) };
  if (!onlyOperands && prefix.startsWith('-')) {
    const equals = prefix.indexOf('=');
    const option = equals < 0 ? undefined : findOption(command, prefix.slice(0, equals));
    // Shells take "=" for the end of a word, so that only the value is asked for.
    if (option !== undefined) return { ...given, prefix: prefix.slice(equals + 1), ...valueOf(option) };
    return { ...given, prefix, candidates: optionCandidates(command, used) };
  }
  const candidates = operands.length > 0 ? [] : subcommandCandidates(command);
  const operand = command.operands?.[operands.length] ?? repeatedOperand(command);
  return { ...given, prefix, candidates, ...(operand?.completes && { source: operand.completes }) };
}

function repeatedOperand({ operands = [] }: CommandSpec) {
  const last = operands.at(-1);
  return last?.repeated === true ? last : undefined;
}

function subcommandCandidates({ subcommands = [] }: CommandSpec): Candidate[] {
  return subcommands.map(({ name, summary }) => ({ word: name, description: summary }));
}

function optionCandidates(command: CommandSpec, used: ReadonlySet<string>): Candidate[] {
  const candidates = optionsOf(command)
    .filter(({ long, spec }) => spec.repeated === true || !used.has(long))
    .map(({ long, spec }) => ({ word: `--${long}`, description: spec.help }));
  return [...candidates, { word: '--help', description: 'print help' }];
}

function valueOf({
  spec,
}: KnownOption): Pick<Completable, 'candidates'> & { readonly source?: CompletionSource } {
  const { completes } = spec;
  if (completes === undefined) return { candidates: [] };
  if (typeof completes === 'string') return { candidates: [], source: completes };
  return { candidates: completes.map((word) => ({ word: word.replace(/TEMPLATE$/, '') })) };
}

function findOption(command: CommandSpec, name: string): KnownOption | undefined {
  return optionsOf(command).find(({ long, short }) => name === `--${long}` || name === short);
}

function optionsOf({ options = [] }: CommandSpec): readonly KnownOption[] {
  return [...options, ...KUBE_FLAGS].map((spec) => ({
    long: /--([a-z-]+)/.exec(spec.flags)?.[1] ?? '',
    short: /^-[a-zA-Z]\b/.exec(spec.flags)?.[0],
    takesValue: spec.flags.includes('<') && !spec.flags.startsWith('--dry-run'),
    spec,
  }));
}
