import type { Connection } from './cluster/connection.ts';
import type { KubeFlags } from './cluster/kube-flags.ts';
import type { ExitCode } from './exit-code.ts';
import { UsageError } from './plugin-error.ts';
import type { Terminal } from './terminal.ts';

/** What a command works with. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly flags: KubeFlags;
  /** The cluster; loaded and prepared when a command asks for it, and closed after it. */
  readonly connect: (options?: { readonly dryRun?: boolean }) => Promise<Connection>;
  readonly now: () => Date;
  /** Ends what waits or watches. */
  readonly signal: AbortSignal;
}

/** Runs a command. What it throws is told to the person. */
export type RunCommand = (
  context: CommandContext,
  operands: readonly string[],
  options: CommandOptions,
) => Promise<ExitCode>;

/** The options of a command by their long names, as they were given. */
export interface CommandOptions {
  text(name: string): string | undefined;
  flag(name: string): boolean;
}

/** @param given what the command-line library read, by the names in camel case */
export function commandOptions(given: Readonly<Record<string, unknown>>): CommandOptions {
  const value = (name: string) =>
    given[name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())];
  return {
    text(name) {
      const found = value(name);
      return typeof found === 'string' ? found : undefined;
    },
    // The library keeps `--no-wait` as the opposite of `wait`.
    flag: (name) => (name.startsWith('no-') ? value(name.slice(3)) === false : value(name) === true),
  };
}

/** How much of a write is only tried. `client`: nothing is sent. `server`: the server tries it and keeps nothing. */
export type DryRun = 'none' | 'client' | 'server';

/** @throws UsageError */
export function dryRunOf(options: CommandOptions): DryRun {
  const text = options.text('dry-run') ?? 'none';
  if (text === 'none' || text === 'client' || text === 'server') return text;
  throw new UsageError('invalid --dry-run, expected "none", "client" or "server"');
}
