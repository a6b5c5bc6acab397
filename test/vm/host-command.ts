import { spawn } from 'node:child_process';

const STDERR_TAIL_CHARACTERS = 4_000;
const SHOWN_COMMAND_CHARACTERS = 300;

export interface HostCommandOptions {
  cwd?: string;
  /** Added to the environment of this process. */
  env?: Readonly<Record<string, string>>;
}

/** A program of the host that could not be started or did not exit with 0. */
export class HostCommandError extends Error {
  readonly stdout: string;

  constructor(argv: readonly string[], reason: string, stdout: string, stderr: string) {
    const command = argv.join(' ');
    const shown =
      command.length > SHOWN_COMMAND_CHARACTERS ? `${command.slice(0, SHOWN_COMMAND_CHARACTERS)}…` : command;
    super(`\`${shown}\` ${reason}${stderr === '' ? '' : `:\n${stderr.trimEnd()}`}`);
    this.name = 'HostCommandError';
    this.stdout = stdout;
  }
}

/**
 * Runs a program of the host without a shell and with an empty standard input.
 *
 * @returns its standard output
 * @throws HostCommandError when it cannot be started, is ended by a signal, or exits with another code than 0;
 *   the message holds the end of what it wrote to stderr
 */
export async function runHostCommand(
  argv: readonly [string, ...string[]],
  options: HostCommandOptions = {},
): Promise<string> {
  const [program, ...args] = argv;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-STDERR_TAIL_CHARACTERS);
  });
  return await new Promise((resolve, reject) => {
    child.on('error', (cause) => reject(new HostCommandError(argv, 'cannot be started', '', cause.message)));
    child.on('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(stdout).toString());
      else {
        const reason = signal === null ? `exited with code ${String(code)}` : `was ended by ${signal}`;
        reject(new HostCommandError(argv, reason, Buffer.concat(stdout).toString(), stderr));
      }
    });
  });
}
