import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeptEntry, RecoveredLog } from './cumulative-log.ts';
import { asHeader, asLine, segmentNumber, type SegmentHeader, type SegmentLine } from './log-segment.ts';

const CHUNK_BYTES = 1024 * 1024;
/** Longest line that is read; the agent writes shorter ones. */
const MAX_LINE_BYTES = 256 * 1024;
const UNFINISHED = '.tmp';

/** What was found in a directory of segments. */
export interface Recovery<T> {
  /** Undefined where there is no segment that this program understands. */
  readonly log: RecoveredLog<T> | undefined;
  readonly segments: readonly { readonly file: string; readonly number: number; readonly bytes: number }[];
  readonly lines: number;
  /** Lines that are none of ours, the torn one at the end of a segment included. */
  readonly broken: number;
}

/**
 * Reads back what a log journal wrote, also one that was killed in the middle of a line. What a snapshot left
 * unfinished is removed. Broken lines are counted and passed over: an entry whose previous state is missing then
 * counts as unchanged, so that nothing is counted twice. Rejects with the file system's error.
 */
export async function recoverLog<T>(options: {
  directory: string;
  name: string;
  asValue: (value: unknown) => T | undefined;
}): Promise<Recovery<T>> {
  const { directory, name, asValue } = options;
  const found: { file: string; number: number; bytes: number }[] = [];
  for (const entry of await readdir(directory)) {
    if (entry.startsWith(`${name}-`) && entry.endsWith(UNFINISHED)) await rm(join(directory, entry));
    const number = segmentNumber(name, entry);
    if (number !== undefined) found.push({ file: join(directory, entry), number, bytes: 0 });
  }
  found.sort((one, other) => one.number - other.number);
  const replay = createReplay<T>();
  let lines = 0;
  let broken = 0;
  for (const segment of found) {
    let header: SegmentHeader | undefined;
    let first = true;
    segment.bytes = await eachLine(segment.file, (text) => {
      lines++;
      const value = text === undefined ? undefined : parsed(text);
      if (first) {
        first = false;
        header = asHeader(value);
        if (header !== undefined) {
          replay.begin(header);
          return;
        }
      }
      const line = header === undefined ? undefined : asLine(value, asValue);
      if (line === undefined || !replay.take(line)) broken++;
    });
  }
  return { log: replay.end(), segments: found, lines, broken };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Calls back for each line, with undefined for one that is too long, and returns the file's size. */
async function eachLine(file: string, onLine: (text: string | undefined) => void): Promise<number> {
  const handle = await open(file, 'r');
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES + MAX_LINE_BYTES);
    let kept = 0;
    let size = 0;
    let tooLong = false;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, kept, CHUNK_BYTES, size);
      if (bytesRead === 0) break;
      size += bytesRead;
      const filled = kept + bytesRead;
      const end = buffer.lastIndexOf(0x0a, filled - 1) + 1;
      if (end > 0) {
        const texts = buffer.toString('utf8', 0, end - 1).split('\n');
        for (const text of texts) {
          onLine(tooLong ? undefined : text);
          tooLong = false;
        }
      }
      kept = filled - end;
      if (kept > MAX_LINE_BYTES) {
        tooLong = true;
        kept = 0;
      }
      buffer.copyWithin(0, end, end + kept);
    }
    if (kept > 0 || tooLong) onLine(tooLong ? undefined : buffer.toString('utf8', 0, kept));
    return size;
  } finally {
    await handle.close();
  }
}

type Chain<T> = KeptEntry<T>[];

/** Puts a log together from its lines. */
function createReplay<T>(): {
  begin(header: SegmentHeader): void;
  /** False for a line that contradicts the ones before. */
  take(line: SegmentLine<T>): boolean;
  end(): RecoveredLog<T> | undefined;
} {
  /** Entries of each key by sequence: those that a reader may have, and the newest. */
  const chains = new Map<string, Chain<T>>();
  let incarnation = '';
  let sequence = 0;
  let acknowledged = 0;

  const take = (line: SegmentLine<T>): boolean => {
    if ('a' in line) {
      acknowledged = Math.max(acknowledged, line.a);
      return true;
    }
    if ('e' in line) {
      const chain = chains.get(line.e);
      const newest = chain?.pop();
      if (chain === undefined || newest === undefined) return false;
      chain.push({ ...newest, ended: true });
      return true;
    }
    const { k: key, v: value } = line;
    if ('b' in line) {
      chains.set(key, [{ key, value, sequence: line.b, previous: undefined, ended: false }]);
      return true;
    }
    sequence = Math.max(sequence, line.s);
    const base = line.p;
    const entry = { key, value, sequence: line.s, previous: undefined, ended: false };
    const chain = chains.get(key);
    if (chain === undefined) {
      chains.set(key, [base === undefined ? entry : { ...entry, previous: { sequence: base, value } }]);
      return base === undefined;
    }
    while ((chain.at(-1)?.sequence ?? 0) > (base ?? 0)) chain.pop();
    const last = chain.at(-1);
    const before = last?.sequence === base ? last : undefined;
    // Acknowledged states that are not the newest are only there for this.
    while ((chain[0]?.sequence ?? acknowledged + 1) <= acknowledged) chain.shift();
    chain.push(
      base === undefined
        ? entry
        : { ...entry, previous: { sequence: base, value: before === undefined ? value : before.value } },
    );
    return base === undefined || before !== undefined;
  };

  return {
    begin(header) {
      if (header.snapshot || header.incarnation !== incarnation) {
        chains.clear();
        acknowledged = sequence = 0;
      }
      incarnation = header.incarnation;
      sequence = Math.max(sequence, header.sequence);
      acknowledged = Math.max(acknowledged, header.acknowledged);
    },
    take,
    end() {
      if (incarnation === '') return undefined;
      const entries: KeptEntry<T>[] = [];
      for (const chain of chains.values()) {
        const newest = chain.at(-1);
        for (const entry of chain) {
          const isSettled = entry.sequence <= acknowledged;
          if (entry === newest ? isSettled && entry.ended : isSettled) continue;
          entries.push(entry);
        }
      }
      entries.sort((one, other) => one.sequence - other.sequence);
      return { incarnation, sequence, acknowledged, entries };
    },
  };
}
