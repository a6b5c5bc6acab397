import { parseArgs } from 'node:util';
import { nearestName } from './nearest-name.ts';
import { UsageError } from './usage-error.ts';

/** One `--name` of a command. */
export interface OptionSpec {
  /** What stands for the value in the help, such as `DIR`; without it the option takes no value. */
  readonly value?: string;
  readonly help: string;
  readonly defaultText?: string;
  /** An empty value is one, and says what no value says. */
  readonly mayBeEmpty?: true;
}

/** Options and operands as they were given; of an option given twice there is no reading. */
export interface GivenOptions {
  readonly values: ReadonlyMap<string, string>;
  readonly flags: ReadonlySet<string>;
  readonly operands: readonly string[];
}

/** Reads the arguments of a command. Throws a {@link UsageError}. */
export function readOptions(
  args: readonly string[],
  specs: Readonly<Record<string, OptionSpec>>,
): GivenOptions {
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(specs).map(([name, spec]) => [
        name,
        { type: spec.value === undefined ? 'boolean' : 'string' } as const,
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<string, string>();
  const flags = new Set<string>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName } = token;
    const spec = Object.hasOwn(specs, name) ? specs[name] : undefined;
    if (spec === undefined || !rawName.startsWith('--')) throw unknownOption(rawName, Object.keys(specs));
    if (values.has(name) || flags.has(name)) throw new UsageError(`--${name} is given twice; give it once`);
    if (spec.value === undefined) {
      if (token.value !== undefined) {
        throw new UsageError(`--${name} takes no value; write --${name} alone`);
      }
      flags.add(name);
      continue;
    }
    const missing = token.value === undefined || (!token.inlineValue && /^-./.test(token.value));
    if (missing || (token.value === '' && spec.mayBeEmpty !== true)) {
      throw new UsageError(`--${name} needs a value: --${name} ${spec.value}`);
    }
    values.set(name, token.value);
  }
  return { values, flags, operands };
}

/** The value of an option that takes one of a few words, or the default. Throws a {@link UsageError}. */
export function chosenWord<T extends string>(
  { values }: GivenOptions,
  name: string,
  words: readonly T[],
  standard?: T,
): T {
  const given = values.get(name) ?? standard;
  if (given === undefined)
    throw new UsageError(`--${name} is missing; expected --${name} ${words.join('|')}`);
  const word = words.find((each) => each === given);
  if (word !== undefined) return word;
  throw new UsageError(`--${name} ${JSON.stringify(given)} is not known; expected ${listOf(words)}`);
}

/** The value of an option that takes a whole number, or undefined. Throws a {@link UsageError}. */
export function wholeNumberOption(
  { values }: GivenOptions,
  name: string,
  bounds: { readonly min: number; readonly max: number },
): number | undefined {
  const given = values.get(name);
  if (given === undefined) return undefined;
  const number = /^[0-9]{1,15}$/.test(given) ? Number(given) : Number.NaN;
  if (number >= bounds.min && number <= bounds.max) return number;
  throw new UsageError(
    `--${name} ${JSON.stringify(given)}: expected a whole number from ${bounds.min} to ${bounds.max}`,
  );
}

/** Throws a {@link UsageError} for an operand that no option wants. */
export function refuseOperands({ operands }: GivenOptions): void {
  const [first] = operands;
  if (first !== undefined) throw new UsageError(`${JSON.stringify(first)} is not expected here`);
}

function unknownOption(rawName: string, known: readonly string[]): UsageError {
  const name = rawName.replace(/^-+/, '');
  const near = nearestName(name, known);
  const hint = near === undefined ? 'agent --help lists the options' : `did you mean --${near}?`;
  return new UsageError(`${JSON.stringify(rawName)} is not an option; ${hint}`);
}

function listOf(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}
