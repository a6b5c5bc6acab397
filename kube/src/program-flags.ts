import { parseArgs } from 'node:util';

/** The command line cannot be understood; the message says what was expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** One `--name` of the command line. */
export interface FlagSpec {
  /** What stands for the value in the help; without it the flag is true or false. */
  readonly value?: string;
  /** One letter: `-o json` besides `--output=json`. */
  readonly short?: string;
  readonly help: string;
  readonly default?: string;
}

/** What was given, as text, by name; defaults included. */
export type GivenFlags<Name extends string> = ReadonlyMap<Name, string>;

/**
 * Reads flags as Kubernetes' own programs take them: `--name=value` or `--name value`; `--name` alone for true; the last of
 * several counts.
 *
 * @throws UsageError
 */
export function readFlags<Name extends string>(
  args: readonly string[],
  specs: Readonly<Record<Name, FlagSpec>>,
): GivenFlags<Name> {
  const entries = Object.entries(specs) as [Name, FlagSpec][];
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      entries.map(([name, { value, short }]) => [
        name,
        {
          type: value === undefined ? ('boolean' as const) : ('string' as const),
          ...(short !== undefined && { short }),
        },
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = new Map<Name, string>();
  for (const [name, spec] of entries) if (spec.default !== undefined) given.set(name, spec.default);
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional')
      throw new UsageError(`${JSON.stringify(token.value)} is not expected here`);
    const { rawName } = token;
    const entry = entries.find(([name, { short }]) => rawName === `--${name}` || rawName === `-${short}`);
    if (entry === undefined) {
      throw new UsageError(`${JSON.stringify(rawName)} is not a flag; --help lists them`);
    }
    const [name, { value }] = entry;
    if (token.value === undefined && value !== undefined) {
      throw new UsageError(`--${name} needs a value: --${name}=${value}`);
    }
    given.set(name, token.value ?? 'true');
  }
  return given;
}

/** One line for each flag. */
export function flagsHelp(specs: Readonly<Record<string, FlagSpec>>): string {
  return Object.entries(specs)
    .map(([name, { value, short, help, default: standard }]) => {
      const long = value === undefined ? `--${name}` : `--${name}=${value}`;
      const usage = short === undefined ? long : `-${short}, ${long}`;
      const given = standard === undefined || standard === '' ? '' : ` (default ${standard})`;
      return `  ${usage}\n      ${help}${given}\n`;
    })
    .join('');
}

/** @throws UsageError naming the flag */
export function truthOf(name: string, text: string): boolean {
  return wordOf(name, text, ['true', 'false'] as const) === 'true';
}

/** @throws UsageError naming the flag */
export function wordOf<Word extends string>(name: string, text: string, words: readonly Word[]): Word {
  const word = words.find((each) => each === text);
  if (word !== undefined) return word;
  throw new UsageError(`--${name} ${JSON.stringify(text)} is not known; expected ${words.join(' or ')}`);
}

/** @throws UsageError naming the flag */
export function portOf(name: string, text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new UsageError(`--${name} ${JSON.stringify(text)}: expected a port from 0 to 65535`);
}

/** Where a server listens. */
export interface Address {
  /** Empty for all addresses of this machine, of both protocols where it has both. */
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** `HOST:PORT`, or `:PORT` for all addresses; `0` for none. @throws UsageError naming the flag */
export function addressOf(name: string, text: string): Address | undefined {
  if (text === '0' || text === '') return undefined;
  const address = parseAddress(text);
  if (address !== undefined) return address;
  throw new UsageError(
    `--${name} ${JSON.stringify(text)}: expected HOST:PORT, such as :8443 or [::1]:8443, or 0 for none`,
  );
}

/** `HOST:PORT`, `[HOST]:PORT` or `:PORT`; undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  const [, six, host, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):([0-9]{1,5})$/.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535) return undefined;
  return { host: six ?? host ?? '', port: Number(port) };
}

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const DURATION = /^(\d+(\.\d+)?(ms|s|m|h))+$/;
const DURATION_PART = /(\d+(?:\.\d+)?)(ms|s|m|h)/g;
/** The longest time that a timer of Node takes. */
const MAX_DURATION_MS = 2 ** 31 - 1;

/**
 * Milliseconds of a duration such as `30s` or `1m30s`; more than none.
 *
 * @param maxMs what a timer takes when left out
 * @throws UsageError naming the flag
 */
export function durationMsOf(name: string, text: string, maxMs: number = MAX_DURATION_MS): number {
  let ms = 0;
  if (text.length <= 32 && DURATION.test(text)) {
    for (const [, amount, unit] of text.matchAll(DURATION_PART)) {
      ms += Number(amount) * UNITS_MS[unit as keyof typeof UNITS_MS];
    }
  }
  if (ms >= 1 && ms <= maxMs) return ms;
  throw new UsageError(
    `--${name} ${JSON.stringify(text)}: expected a time longer than none, such as 30s or 1m30s`,
  );
}
