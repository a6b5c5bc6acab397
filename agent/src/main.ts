import { describeError } from '@runtime-enforcer/telemetry/error-text';
import { readCommand, type Command } from './commands/command.ts';
import { commandHelpText, helpText } from './commands/help.ts';
import { UsageError } from './commands/usage-error.ts';
import { AGENT_VERSION } from './version.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const LAST_WORDS_MS = 500;

/** Runs the command line; the exit code says how it went. Commands are loaded when they are asked for. */
async function main(): Promise<number> {
  try {
    return await run(readCommand(process.argv.slice(2), process.env));
  } catch (error) {
    process.stderr.write(`agent: ${describeError(error)}\n`);
    return error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED;
  }
}

async function run(command: Command): Promise<number> {
  switch (command.name) {
    case 'help':
      process.stdout.write(command.of === undefined ? helpText() : commandHelpText(command.of));
      return 0;
    case 'version':
      process.stdout.write(`${AGENT_VERSION}\n`);
      return 0;
    case 'promote': {
      const { promoteFile } = await import('./commands/promote.ts');
      process.stdout.write(await promoteFile(command.file, command.mode, command.output));
      return 0;
    }
    case 'run': {
      const { runAgent } = await import('./commands/run.ts');
      return await runAgent(command.options);
    }
    case 'check': {
      const { checkNode } = await import('./commands/check.ts');
      const { text, usable } = await checkNode(command.nriSocketPath);
      process.stdout.write(text);
      return usable ? 0 : EXIT_FAILED;
    }
    case 'status': {
      const { agentStatus } = await import('./commands/status.ts');
      process.stdout.write(await agentStatus(command.stateDirectory, command.format));
      return 0;
    }
    case 'override': {
      const { override } = await import('./commands/node-commands.ts');
      process.stdout.write(await override(command.mode));
      return 0;
    }
    case 'release': {
      const { release } = await import('./commands/node-commands.ts');
      process.stdout.write(await release(command.stateDirectory));
      return 0;
    }
    case 'resume': {
      const { resume } = await import('./commands/node-commands.ts');
      process.stdout.write(await resume(command.stateDirectory));
      return 0;
    }
  }
}

process.exitCode = await main();
// What was started may still hold the process: it ends without, once its last words are read.
setTimeout(() => process.exit(), LAST_WORDS_MS).unref();
