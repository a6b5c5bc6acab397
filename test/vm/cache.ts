import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { withFileLock } from './file-lock.ts';
import type { Progress } from './progress.ts';

const KEY_CHARACTERS = 16;
/** Versions of one asset that stay: another checkout may still use an older one. */
const KEPT_VERSIONS = 3;

/** Something that takes long to make, is the same for the same inputs, and fills one directory. */
export interface Asset {
  /** Letters, digits, dots and dashes; part of the directory's name. */
  kind: string;
  /** What made it: when this changes, it is made again. See {@link contentKey}. */
  key: string;
  /** For the progress line, such as `kernel 6.1`. */
  title: string;
  /** Fills the given empty directory. */
  make(directory: string): Promise<void>;
}

/** Where downloads and built guests live: outside the checkout, so that a fresh clone finds them. */
export function cacheDirectory(): string {
  const base = process.env['XDG_CACHE_HOME'];
  return join(base === undefined || base === '' ? join(homedir(), '.cache') : base, 'runtime-enforcer');
}

/** A short name for everything that an asset was made from. The order of the parts counts. */
export function contentKey(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest('hex').slice(0, KEY_CHARACTERS);
}

/** The sha256 of a file's bytes, in hexadecimal. */
export async function fileDigest(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/**
 * The directory of an asset, made if it is not there yet. A directory that exists is complete: it is filled under
 * another name and then renamed. Two processes never make the same kind at once.
 *
 * @throws what `make` throws; nothing is left behind then
 */
export async function cachedAsset(asset: Asset, progress: Progress): Promise<string> {
  const root = cacheDirectory();
  const directory = join(root, `${asset.kind}-${asset.key}`);
  if (await isUsable(directory)) return directory;
  return await withFileLock(
    join(root, 'locks', asset.kind),
    async () => {
      if (await isUsable(directory)) return directory;
      await removeLeftovers(join(root, 'unfinished'), asset.kind);
      const unfinished = join(root, 'unfinished', `${asset.kind}-${randomBytes(4).toString('hex')}`);
      await mkdir(unfinished, { recursive: true });
      const start = performance.now();
      progress(`making ${asset.title}`);
      try {
        await asset.make(unfinished);
        await rename(unfinished, directory);
      } finally {
        await rm(unfinished, { recursive: true, force: true });
      }
      progress(`made ${asset.title} in ${((performance.now() - start) / 1_000).toFixed(1)} s`);
      await removeOldVersions(root, asset.kind);
      return directory;
    },
    () => progress(`waiting for another process that makes ${asset.title}`),
  );
}

async function isUsable(directory: string): Promise<boolean> {
  const now = new Date();
  try {
    await utimes(directory, now, now);
    return true;
  } catch {
    return false;
  }
}

async function removeLeftovers(directory: string, kind: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of await readdir(directory)) {
    if (isVersionOf(name, kind)) await rm(join(directory, name), { recursive: true, force: true });
  }
}

async function removeOldVersions(root: string, kind: string): Promise<void> {
  const versions: { path: string; usedMs: number }[] = [];
  for (const name of await readdir(root)) {
    if (!isVersionOf(name, kind)) continue;
    const path = join(root, name);
    versions.push({ path, usedMs: (await stat(path)).mtimeMs });
  }
  versions.sort((left, right) => right.usedMs - left.usedMs);
  for (const { path } of versions.slice(KEPT_VERSIONS)) await rm(path, { recursive: true, force: true });
}

function isVersionOf(name: string, kind: string): boolean {
  return name.startsWith(`${kind}-`) && /^[0-9a-f]+$/.test(name.slice(kind.length + 1));
}
