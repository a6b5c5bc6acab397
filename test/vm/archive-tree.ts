import { lstat, readFile, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type CpioEntry, cpioArchive } from './cpio.ts';

const PERMISSION_BITS = 0o7777;

/**
 * The archive entries of a host file or of everything below a host directory, with their modes, under another path.
 *
 * @param source a file, a directory or a symbolic link (which is followed at the top and kept below)
 * @param path where it appears in the archive; `/` puts a directory's content at the root
 * @throws Error for a missing source and for anything that is neither file, directory nor symbolic link
 */
export async function treeEntries(source: string, path: string): Promise<CpioEntry[]> {
  return await entriesOf(join(source, '.').replace(/\/\.$/, ''), path, true);
}

/** {@link treeEntries} as a whole archive. */
export async function archiveTree(source: string, path: string): Promise<Buffer> {
  return cpioArchive(await treeEntries(source, path));
}

async function entriesOf(source: string, path: string, follow: boolean): Promise<CpioEntry[]> {
  const found = await lstat(source);
  if (found.isSymbolicLink()) {
    if (follow) return await entriesOf(join(source, '..', await readlink(source)), path, true);
    return [{ kind: 'link', path, target: await readlink(source) }];
  }
  const mode = found.mode & PERMISSION_BITS;
  if (found.isFile()) return [{ kind: 'file', path, mode, content: await readFile(source) }];
  if (!found.isDirectory())
    throw new Error(`cannot archive ${source}: neither a file nor a directory nor a link`);
  const entries: CpioEntry[] = path === '/' ? [] : [{ kind: 'directory', path, mode }];
  for (const name of (await readdir(source)).sort()) {
    entries.push(...(await entriesOf(join(source, name), path === '/' ? name : `${path}/${name}`, false)));
  }
  return entries;
}
