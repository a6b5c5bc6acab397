import { readFile } from 'node:fs/promises';
import { quote } from '@runtime-enforcer/api/field-error';
import { PluginError } from './plugin-error.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  EACCES: 'you may not read it',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is no directory',
};

/** The bytes of a file, or of standard input for `-`. Throws a PluginError. */
export async function readInput(file: string): Promise<Buffer> {
  try {
    if (file !== '-') return await readFile(file);
    const chunks: Buffer[] = [];
    for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

/** Says why a file or a directory could not be read. */
export function unreadable(file: string, cause: unknown): PluginError {
  const { code = 'unreadable' } = cause as NodeJS.ErrnoException;
  return new PluginError(`${quote(file)} cannot be read: ${REASONS[code] ?? code}`, undefined, { cause });
}
