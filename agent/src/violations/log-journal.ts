import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandError } from '../commands/command-error.ts';
import { nextTurn } from '../event-loop.ts';
import type { AgentCounters } from '../metrics.ts';
import { problemOf } from '../node/bounded-file.ts';
import type { Logger } from '../nri/handlers.ts';
import { createCumulativeLog, type KeptLog, type LogEntry } from './cumulative-log.ts';
import { recoverLog, type Recovery } from './log-recovery.ts';
import {
  acknowledgedLine,
  endedLine,
  entryLine,
  headerLine,
  SEGMENT_VERSION,
  segmentName,
} from './log-segment.ts';
import { snapshotTexts } from './log-snapshot.ts';

/** All segments together, also while they are compacted. */
export const MAX_JOURNAL_BYTES = 128 * 1024 * 1024;
/** How often the disk is asked to make sure of what was written, at most. */
const SYNC_MS = 1_000;
const RETRY_MS = 1_000;
/** Lines that are made and written at once. */
const CHUNK_LINES = 512;
/** Each start of an agent begins another. */
const MAX_SEGMENTS = 64;
/** Changes that wait for a disk that takes none; beyond them everything is written anew when it does. */
const MAX_WAITING = 20_000;
/**
 * Sequence numbers go on that far after those that were found: a number that an earlier agent gave out and could not
 * save never stands for something else.
 */
const RESTART_GAP = 2 ** 20;

/** A cumulative log that is kept in a directory. */
export interface LogJournal<T> {
  readonly log: KeptLog<T>;
  /** What was read back, and how many lines of it could not be. */
  readonly recovered: { readonly lines: number; readonly broken: number };
  /** Of all segments. */
  readonly bytes: number;
  /** Changes that are not on disk yet. */
  readonly waiting: number;
  /** Resolves when everything up to now is on disk, or could not be written. */
  flush(): Promise<void>;
  /** Writes what waits, for at most `timeoutMs`. The log itself goes on in memory. */
  stop(timeoutMs: number): Promise<void>;
}

/** The part of a file that is written; tests let it fail. */
export interface SegmentFile {
  appendFile(text: string): Promise<void>;
  truncate(bytes: number): Promise<void>;
  datasync(): Promise<void>;
  close(): Promise<void>;
}

export interface LogJournalOptions<T> {
  readonly directory: string;
  /** Begins the names of the files. */
  readonly name: string;
  readonly asValue: (value: unknown) => T | undefined;
  readonly log: Logger;
  readonly counters: AgentCounters;
  readonly maxBytes?: number;
  readonly openFile?: (path: string) => Promise<SegmentFile>;
}

/** A change that is to be written: an entry, or the key of a subject that is gone. */
type Waiting<T> = LogEntry<T> | { readonly endedKey: string };

interface Segment {
  readonly file: string;
  readonly number: number;
  bytes: number;
}

/**
 * Recovers the log of a directory and keeps it there from then on, as JSON Lines in numbered segments.
 *
 * - Changes are written at once, in batches; a killed agent loses at most those of its last milliseconds, which no
 *   reader was given: readers get an entry after the disk made sure of it (`fdatasync`), at most once a second.
 * - Incarnation and sequence therefore go on across restarts, and over from one agent to the next: whoever opens the
 *   journal after the one before has stopped reads exactly what its readers could have read, so nothing counts twice.
 * - Where the disk takes nothing, that is counted and said, the log goes on in memory, readers are served from there,
 *   and what changed is written when the disk takes it again. An agent that dies before that leaves entries that its
 *   readers have and its successor does not; their occurrences may be offered again.
 * - At two thirds of `maxBytes` what is still needed is written anew and the rest removed; it gets one third. What
 *   does not fit, oldest subjects that are gone first, stays in memory only, and is counted.
 *
 * Rejects with a {@link CommandError} if the directory cannot be made or read.
 */
export async function openLogJournal<T>(options: LogJournalOptions<T>): Promise<LogJournal<T>> {
  const { directory, name, asValue, log, counters, maxBytes = MAX_JOURNAL_BYTES } = options;
  const openFile = options.openFile ?? ((path) => open(path, 'a', 0o640));
  const found = await recoverDirectory(directory, name, asValue);
  if (found.broken > 0) {
    counters.add('journal_lines_broken', found.broken);
    log.warn({ directory, lines: found.lines, broken: found.broken }, 'lines of the journal cannot be read');
  }
  let waiting = new Set<Waiting<T>>();
  let acknowledgedWaits = false;
  let segments: Segment[] = found.segments.map((segment) => ({ ...segment }));
  let file: SegmentFile | undefined;
  /** What is written next has to stand for everything. */
  let anew = found.log === undefined;
  /** What was found may end in a torn line. */
  let begun = false;
  let written = 0;
  let lastSyncMs = 0;
  let unsynced = false;
  let trouble = '';
  let stopped = false;
  let writing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const cumulative: KeptLog<T> = createCumulativeLog<T>({
    incarnation: randomUUID(),
    held: true,
    ...(found.log !== undefined && {
      recovered: { ...found.log, sequence: found.log.sequence + RESTART_GAP },
    }),
    onEntry(entry, replaced) {
      if (replaced !== undefined) waiting.delete(replaced);
      waiting.add(entry);
      if (waiting.size > MAX_WAITING + cumulative.size.entries) {
        waiting.clear();
        anew = true;
      }
      schedule(0);
    },
    onEnded(key) {
      waiting.add({ endedKey: key });
      schedule(0);
    },
    onAcknowledged() {
      acknowledgedWaits = true;
      schedule(0);
    },
    onForgotten: (count) => counters.add('journal_entries_forgotten', count),
  });

  const totalBytes = (): number => segments.reduce((sum, { bytes }) => sum + bytes, 0);
  const header = (snapshot: boolean): string => {
    const { incarnation, sequence, acknowledged } = cumulative;
    return headerLine({ version: SEGMENT_VERSION, incarnation, sequence, acknowledged, snapshot });
  };
  const nextNumber = (): number => (segments.at(-1)?.number ?? 0) + 1;
  const closeFile = async (): Promise<void> => {
    const closing = file;
    file = undefined;
    await closing?.close().catch(() => undefined);
  };

  /** Appends whole lines to the last segment, or nothing. */
  const append = async (segment: Segment, text: string): Promise<void> => {
    file ??= await openFile(segment.file);
    try {
      await file.appendFile(text);
    } catch (error) {
      // Half a line is taken back; where even that fails, it ends with the segment.
      await file.truncate(segment.bytes).catch(() => beginSegment());
      await closeFile();
      throw error;
    }
    segment.bytes += Buffer.byteLength(text);
  };
  const beginSegment = (): Segment => {
    const number = nextNumber();
    const segment = { file: join(directory, segmentName(name, number)), number, bytes: 0 };
    segments.push(segment);
    return segment;
  };

  /** Writes everything that is needed into one new segment, and removes the others. */
  const writeAnew = async (): Promise<void> => {
    await closeFile();
    const budget = Math.floor(maxBytes / 3);
    const number = nextNumber();
    const path = join(directory, segmentName(name, number));
    const unfinished = `${path}.tmp`;
    const fresh = await openFile(unfinished);
    const taken = waiting;
    waiting = new Set();
    const entries = cumulative.entries();
    const upTo = cumulative.sequence;
    let bytes = 0;
    try {
      await fresh.truncate(0);
      const texts = snapshotTexts(entries, budget, header(true), (count) =>
        counters.add('journal_entries_not_kept', count),
      );
      for (const text of texts) {
        await fresh.appendFile(text);
        bytes += Buffer.byteLength(text);
        await nextTurn();
      }
      await fresh.datasync();
      await fresh.close();
      await rename(unfinished, path);
    } catch (error) {
      await fresh.close().catch(() => undefined);
      await rm(unfinished, { force: true }).catch(() => undefined);
      for (const change of waiting) taken.add(change);
      waiting = taken;
      throw error;
    }
    const old = segments;
    segments = [{ file: path, number, bytes }];
    anew = false;
    begun = true;
    written = upTo;
    cumulative.release(upTo);
    for (const segment of old) await rm(segment.file, { force: true });
  };

  const writeSome = async (): Promise<void> => {
    const isFull = totalBytes() >= (maxBytes * 2) / 3 || segments.length > MAX_SEGMENTS;
    if (anew || isFull) return writeAnew();
    const batch: Waiting<T>[] = [];
    let text = acknowledgedWaits ? acknowledgedLine(cumulative.acknowledged) : '';
    const acknowledgedWas = cumulative.acknowledged;
    for (const change of waiting) {
      if (batch.length >= CHUNK_LINES) break;
      batch.push(change);
      text += 'endedKey' in change ? endedLine(change.endedKey) : entryLine(change);
    }
    let segment = segments.at(-1);
    if (segment === undefined || !begun || segment.bytes >= maxBytes / 12) {
      await sync();
      await closeFile();
      segment = beginSegment();
      begun = true;
    }
    if (segment.bytes === 0) text = header(false) + text;
    await append(segment, text);
    unsynced = true;
    acknowledgedWaits &&= acknowledgedWas !== cumulative.acknowledged;
    for (const change of batch) {
      waiting.delete(change);
      if ('sequence' in change) written = Math.max(written, change.sequence);
    }
  };

  const sync = async (): Promise<void> => {
    if (!unsynced) return;
    const upTo = written;
    await file?.datasync();
    unsynced = false;
    lastSyncMs = performance.now();
    cumulative.release(upTo);
  };

  const hasWork = (): boolean => waiting.size > 0 || acknowledgedWaits || anew;
  /** Writes and makes sure until nothing is left; `now` does not wait to do the latter. */
  const drain = async (now: boolean): Promise<void> => {
    try {
      while (hasWork()) await writeSome();
      const due = lastSyncMs + SYNC_MS - performance.now();
      if (now || due <= 0) await sync();
      else if (unsynced) schedule(due);
      if (trouble !== '') log.info({ directory }, 'the journal can be written again');
      trouble = '';
    } catch (error) {
      counters.add('journal_write_errors');
      const problem = problemOf(error);
      if (problem !== trouble) {
        log.error(
          { directory, problem },
          'the journal cannot be written; violations are kept in memory only',
        );
      }
      trouble = problem;
      // Better offered twice after a crash than not at all now.
      cumulative.release(cumulative.sequence);
      if (!stopped) schedule(RETRY_MS);
    }
  };
  const run = (now: boolean): Promise<void> => {
    writing = (writing ?? Promise.resolve()).then(() => drain(now));
    const own = writing;
    void own.then(() => {
      if (writing !== own) return;
      writing = undefined;
      if (hasWork() && trouble === '') schedule(0);
    });
    return own;
  };
  const schedule = (ms: number): void => {
    if (stopped || (timer !== undefined && ms > 0)) return;
    // A disk that takes nothing is asked when it is time to, not for each change.
    if (ms === 0 && (trouble !== '' || writing !== undefined)) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      void run(false);
    }, ms);
    timer.unref();
  };

  return {
    log: cumulative,
    recovered: { lines: found.lines, broken: found.broken },
    get bytes() {
      return totalBytes();
    },
    get waiting() {
      return waiting.size;
    },
    flush: () => run(true),
    async stop(timeoutMs) {
      stopped = true;
      clearTimeout(timer);
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const limit = setTimeout(() => resolve(undefined), timeoutMs);
      await Promise.race([run(true).then(closeFile), promise]);
      clearTimeout(limit);
    },
  };
}

async function recoverDirectory<T>(
  directory: string,
  name: string,
  asValue: (value: unknown) => T | undefined,
): Promise<Recovery<T>> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o750 });
    return await recoverLog({ directory, name, asValue });
  } catch (cause) {
    throw new CommandError(`cannot read the journal in --journal-dir ${directory}: ${problemOf(cause)}`, {
      cause,
    });
  }
}
