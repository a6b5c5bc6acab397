import { access, constants, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CommandError } from '../commands/command-error.ts';
import { problemOf } from './bounded-file.ts';

/**
 * Makes sure that a directory is there and can be written to. Rejects with a {@link CommandError} that names it and
 * the option it came from.
 */
export async function ownDirectory(directory: string, option: string, mode: number): Promise<void> {
  try {
    await makeDirectory(directory, mode);
    await access(directory, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw new CommandError(`cannot use the directory ${directory} of ${option}: ${problemOf(cause)}`, {
      cause,
    });
  }
}

/** Node's own recursive mkdir never ends below /proc, where a parent exists and a child cannot. */
async function makeDirectory(directory: string, mode: number): Promise<void> {
  try {
    await mkdir(directory, { mode });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EEXIST') {
      if (!(await stat(directory)).isDirectory()) throw new Error('it is not a directory', { cause: error });
      return;
    }
    const parent = dirname(directory);
    if (code !== 'ENOENT' || parent === directory) throw error;
    await makeDirectory(parent, mode);
    await mkdir(directory, { mode });
  }
}
