import type { Connection } from './cluster/connection.ts';
import type { KubeFlags } from './cluster/kube-flags.ts';
import type { CommandContext } from './command-context.ts';
import { reportError } from './error-text.ts';
import { EXIT_OK, type ExitCode } from './exit-code.ts';
import { runProgram } from './program.ts';
import { processTerminal, type Terminal } from './terminal.ts';
import { ROOT } from './tree/root.ts';

const COMPLETE = '__complete';

/** Runs the command line; the exit code says how it went. Commands are loaded when they are asked for. */
async function main(args: readonly string[]): Promise<ExitCode> {
  const terminal = processTerminal();
  const connections: Connection[] = [];
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  process.once('SIGTERM', () => interrupted.abort());
  const open = (flags: KubeFlags): CommandContext =>
    contextOf(terminal, flags, interrupted.signal, connections);
  try {
    if (args[0] === COMPLETE) {
      const { complete } = await import('./completion/complete.ts');
      terminal.write(await complete(args.slice(1), ROOT, open));
      return EXIT_OK;
    }
    return await runProgram(ROOT, args, terminal, open);
  } catch (error) {
    const { text, exitCode } = reportError(error);
    terminal.note(text);
    return exitCode;
  } finally {
    await Promise.all(connections.map(async (connection) => await connection.close()));
  }
}

function contextOf(
  terminal: Terminal,
  flags: KubeFlags,
  signal: AbortSignal,
  connections: Connection[],
): CommandContext {
  return {
    terminal,
    flags,
    signal,
    now: () => new Date(),
    async connect(options = {}) {
      const { connect } = await import('./cluster/connection.ts');
      const connection = connect({ flags, note: terminal.note, ...options });
      connections.push(connection);
      return connection;
    },
  };
}

// Whoever reads, such as head, may have read enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT_OK : 1);
});

void main(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
