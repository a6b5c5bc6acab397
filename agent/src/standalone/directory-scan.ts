import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { problemOf, readBoundedFile } from '../node/bounded-file.ts';

/**
 * How long a file must have been left alone before it is read, so that an editor that writes in several steps is
 * not read between them; and after how long a file that never rests is read nevertheless.
 */
export const SETTLE_MS = 100;
const MAX_SETTLE_MS = 400;
/** Files that are looked at together. */
const PARALLEL = 16;
const MAX_FILES = 20_000;
/** About how much text is handed on at once. */
const MAX_CHANGED_BYTES = 16 * 1024 * 1024;

/** Names that begin with a dot are what editors and Kubernetes' volumes keep for themselves. */
const POLICY_FILE = /^[^.].*\.ya?ml$/i;

/** A file that is not what it was. */
export type FileChange = { readonly file: string } & (
  | { readonly kind: 'content'; readonly content: Uint8Array }
  | { readonly kind: 'unreadable'; readonly problem: string }
  | { readonly kind: 'removed' }
);

export interface ScanResult {
  readonly changes: readonly FileChange[];
  /** Something is being changed right now: look again after {@link SETTLE_MS}. */
  readonly unsettled: boolean;
  /** Much has changed, and this is a part of it: look again at once. */
  readonly partial: boolean;
  /** There are more files than are read. */
  readonly tooMany: boolean;
}

interface KnownFile {
  /** Equal while nobody touches the file. */
  signature: string;
  digest: string;
  problem: string;
  unsettledSince: number | undefined;
}

function newFile(): KnownFile {
  return { signature: '', digest: '', problem: '', unsettledSince: undefined };
}

export interface DirectoryScan {
  /** Compares the directory with what it was at the call before. Rejects if it cannot be read at all. */
  scan(): Promise<ScanResult>;
}

/** Makes a reader of the policy files (`*.yaml`, `*.yml`) that stand directly in a directory. */
export function createDirectoryScan(directory: string): DirectoryScan {
  const known = new Map<string, KnownFile>();

  /** True once the file has rested long enough, or never does. */
  const mayRead = (entry: KnownFile, changedMsAgo: number): boolean => {
    const restless = changedMsAgo >= 0 && changedMsAgo < SETTLE_MS;
    entry.unsettledSince ??= performance.now();
    return !restless || performance.now() - entry.unsettledSince >= MAX_SETTLE_MS;
  };

  const look = async (file: string, mayBeMoved: boolean): Promise<FileChange | 'same' | 'unsettled'> => {
    const path = join(directory, file);
    const entry = known.get(file) ?? newFile();
    let stats: BigIntStats;
    try {
      stats = await stat(path, { bigint: true });
    } catch (error) {
      known.set(file, entry);
      const sinceMs = performance.now() - (entry.unsettledSince ?? performance.now());
      const told = entry.problem !== '';
      return told || mayRead(entry, sinceMs) ? unreadable(file, entry, problemOf(error)) : 'unsettled';
    }
    const signature = [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':');
    if (signature === entry.signature) return 'same';
    const isNew = !known.has(file);
    known.set(file, entry);
    const changedMsAgo = Date.now() - Number(stats.ctimeMs);
    if (!mayRead(entry, isNew && mayBeMoved ? 0 : changedMsAgo)) return 'unsettled';
    const read = await readBoundedFile(path);
    entry.unsettledSince = undefined;
    // A file that is written all the time may change without its times telling: it is read at each look.
    entry.signature = changedMsAgo >= 0 && changedMsAgo < SETTLE_MS ? '' : signature;
    if (!read.ok) return unreadable(file, entry, read.problem);
    entry.problem = '';
    const digest = createHash('sha256').update(read.content).digest('base64');
    if (digest === entry.digest) return 'same';
    entry.digest = digest;
    return { file, kind: 'content', content: read.content };
  };

  return {
    async scan() {
      const { files, tooMany } = await policyFiles(directory);
      const changes: FileChange[] = [];
      let unsettled = false;
      const present = new Set(files);
      for (const [file, entry] of known) {
        if (present.has(file)) continue;
        entry.unsettledSince ??= performance.now();
        if (performance.now() - entry.unsettledSince < SETTLE_MS) {
          unsettled = true;
        } else {
          known.delete(file);
          changes.push({ file, kind: 'removed' });
        }
      }
      // A file that appears while another disappears may be the other one under a new name.
      const mayBeMoved = unsettled;
      let changedBytes = 0;
      let start = 0;
      for (; start < files.length && changedBytes < MAX_CHANGED_BYTES; start += PARALLEL) {
        const looks = files.slice(start, start + PARALLEL).map((file) => look(file, mayBeMoved));
        for (const result of await Promise.all(looks)) {
          if (result === 'unsettled') unsettled = true;
          else if (result !== 'same') changes.push(result);
          if (typeof result === 'object' && result.kind === 'content') changedBytes += result.content.length;
        }
      }
      return { changes, unsettled, partial: start < files.length, tooMany };
    },
  };
}

/** The same problem is told once. */
function unreadable(file: string, entry: KnownFile, problem: string): FileChange | 'same' {
  entry.unsettledSince = undefined;
  if (entry.problem === problem) return 'same';
  entry.problem = problem;
  entry.digest = '';
  return { file, kind: 'unreadable', problem };
}

async function policyFiles(directory: string): Promise<{ files: string[]; tooMany: boolean }> {
  const files: string[] = [];
  for await (const { name } of await opendir(directory)) {
    if (!POLICY_FILE.test(name)) continue;
    if (files.length === MAX_FILES) return { files: files.sort(), tooMany: true };
    files.push(name);
  }
  return { files: files.sort(), tooMany: false };
}
