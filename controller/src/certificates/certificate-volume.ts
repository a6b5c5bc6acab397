import { mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecretFields } from './authority-record.ts';

const CURRENT = '..data';
const VERSION_PREFIX = '..version-';
const SECRET_MODE = 0o600;

/**
 * Replaces all files of a directory at once, as kubelet does for a mounted secret: each name is a link into the version
 * to which `..data` points, and only that link is swapped. The versions before are removed.
 */
export async function writeVolume(directory: string, files: SecretFields): Promise<void> {
  await mkdir(directory, { recursive: true });
  const before = await readlink(join(directory, CURRENT)).catch(() => '');
  const version = await freshVersion(directory);
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory, version, name), text, { mode: SECRET_MODE });
  }
  await replaceLink(join(directory, CURRENT), version);
  for (const name of Object.keys(files)) {
    const wanted = join(CURRENT, name);
    const found = await readlink(join(directory, name)).catch(() => '');
    if (found !== wanted) await replaceLink(join(directory, name), wanted);
  }
  for (const name of await readdir(directory)) {
    const isOld = name.startsWith(VERSION_PREFIX) && name !== version && name !== before;
    if (isOld) await rm(join(directory, name), { recursive: true, force: true });
  }
}

async function freshVersion(directory: string): Promise<string> {
  const version = `${VERSION_PREFIX}${process.pid}-${Date.now()}-${Math.random().toString(36).slice(2)}`;
  await mkdir(join(directory, version), { mode: 0o700 });
  return version;
}

async function replaceLink(path: string, target: string): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  await symlink(target, temporary);
  await rename(temporary, path);
}
