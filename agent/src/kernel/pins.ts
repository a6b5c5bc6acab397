import { mkdir, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';

/** Where enforcement lives on while no agent runs. */
export const DEFAULT_PIN_ROOT = '/sys/fs/bpf/runtime-enforcer';

/*
 * pinRoot/abi-<ABI>/            what decides: its maps, its links, and the mark of what they were made from
 *           map_<name>
 *           link_<program>
 *           build_<digest>/     an empty directory, made last and removed first: without it the links are in doubt
 * pinRoot/abi-<ABI>_next/       what is about to replace it; complete once it has the mark
 */
const ABI_PREFIX = 'abi-';
const NEXT_SUFFIX = '_next';
const MAP_PREFIX = 'map_';
const LINK_PREFIX = 'link_';
const REPLACING_SUFFIX = '_new';
const BUILD_PREFIX = 'build_';

/** Paths below one directory of pins. */
export interface PinDirectory {
  readonly path: string;
  readonly abi: number;
  map(name: string): string;
  link(program: string): string;
  /** Where the link waits that is going to replace the program's present one. */
  replacingLink(program: string): string;
  build(digest: string): string;
}

/** What is pinned in a directory. */
export interface PinListing {
  readonly maps: readonly string[];
  /** By program; not those that still wait. */
  readonly links: readonly string[];
  /** Undefined: the links are not all there, or not known to be of one build. */
  readonly build: string | undefined;
}

export function pinDirectory(root: string, abi: number, which: 'live' | 'next' = 'live'): PinDirectory {
  const path = join(root, `${ABI_PREFIX}${abi}${which === 'next' ? NEXT_SUFFIX : ''}`);
  return {
    path,
    abi,
    map: (name) => join(path, `${MAP_PREFIX}${name}`),
    link: (program) => join(path, `${LINK_PREFIX}${program}`),
    replacingLink: (program) => join(path, `${LINK_PREFIX}${program}${REPLACING_SUFFIX}`),
    build: (digest) => join(path, `${BUILD_PREFIX}${digest}`),
  };
}

/** Undefined where the directory is not there. */
export async function listPins(directory: PinDirectory): Promise<PinListing | undefined> {
  const names = await namesIn(directory.path);
  if (names === undefined) return undefined;
  const after = (prefix: string): string[] =>
    names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return {
    maps: after(MAP_PREFIX),
    links: after(LINK_PREFIX).filter((name) => !name.endsWith(REPLACING_SUFFIX)),
    build: after(BUILD_PREFIX)[0],
  };
}

/** The ABIs of which something decides on this node. */
export async function pinnedAbis(root: string): Promise<number[]> {
  const names = (await namesIn(root)) ?? [];
  return names
    .filter((name) => new RegExp(`^${ABI_PREFIX}\\d+$`).test(name))
    .map((name) => Number(name.slice(ABI_PREFIX.length)))
    .sort((a, b) => a - b);
}

export async function markBuild(directory: PinDirectory, digest: string): Promise<void> {
  await mkdir(directory.build(digest));
}

/** Takes the mark away: from then on the links are in doubt until a new one is made. */
export async function unmarkBuild(directory: PinDirectory): Promise<void> {
  const names = (await namesIn(directory.path)) ?? [];
  for (const name of names.filter((each) => each.startsWith(BUILD_PREFIX))) {
    await rmdir(join(directory.path, name));
  }
}

/**
 * Removes everything in a directory and itself: links first, so that nothing decides with half of the maps.
 * One that is not there is no error.
 */
export async function removePins(path: string): Promise<void> {
  const names = await namesIn(path);
  if (names === undefined) return;
  const links = names.filter((name) => name.startsWith(LINK_PREFIX));
  const marks = names.filter((name) => name.startsWith(BUILD_PREFIX));
  for (const name of links) await unlink(join(path, name));
  for (const name of marks) await rmdir(join(path, name));
  for (const name of names.filter((each) => !links.includes(each) && !marks.includes(each))) {
    await unlink(join(path, name));
  }
  await rmdir(path);
}

/** Removes every ABI's pins, and the root if nothing else is in it. Returns what was removed. */
export async function removeAllPins(root: string): Promise<string[]> {
  const names = (await namesIn(root)) ?? [];
  const removed: string[] = [];
  for (const name of names.filter((each) => each.startsWith(ABI_PREFIX))) {
    await removePins(join(root, name));
    removed.push(name);
  }
  if (names.length === removed.length) await ignoring('ENOENT', rmdir(root));
  return removed;
}

/**
 * Lets `next` take the place of everything else under `root`. To be called when its links are pinned and marked;
 * can be called again after it was interrupted.
 */
export async function promoteNext(root: string, abi: number): Promise<void> {
  const next = pinDirectory(root, abi, 'next');
  for (const name of (await namesIn(root)) ?? []) {
    const path = join(root, name);
    if (name.startsWith(ABI_PREFIX) && path !== next.path) await removePins(path);
  }
  await rename(next.path, pinDirectory(root, abi).path);
}

async function namesIn(path: string): Promise<string[] | undefined> {
  return ignoring('ENOENT', readdir(path));
}

async function ignoring<T>(code: string, action: Promise<T>): Promise<T | undefined> {
  try {
    return await action;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return undefined;
    throw error;
  }
}
