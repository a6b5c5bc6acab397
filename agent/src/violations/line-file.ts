import { open, rename, stat, type FileHandle } from 'node:fs/promises';
import { CommandError } from '../commands/command-error.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import { problemOf } from '../node/bounded-file.ts';

/** Size at which a file is put aside, and how many there are, the current one included. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;
export const MAX_FILES = 5;
/** Text that waits for the disk. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Text that is written at once. */
const CHUNK_BYTES = 256 * 1024;
const RETRY_MS = 1_000;

/** A file of lines, rotated by size: `FILE`, then `FILE.1` (newest) and so on. */
export interface LineFile {
  /** Rejects with a {@link CommandError} if the file cannot be written. */
  start(): Promise<void>;
  /** Takes a line without its end; false if it was dropped. Never waits. */
  write(line: string): boolean;
  /** Writes what waits, for at most `timeoutMs`, and closes the file. */
  stop(timeoutMs: number): Promise<void>;
}

export function createLineFile(options: {
  file: string;
  log: Logger;
  counters: AgentCounters;
  maxFileBytes?: number;
  maxFiles?: number;
  maxWaitingBytes?: number;
}): LineFile {
  const { file, log, counters } = options;
  const {
    maxFileBytes = MAX_FILE_BYTES,
    maxFiles = MAX_FILES,
    maxWaitingBytes = MAX_WAITING_BYTES,
  } = options;
  let waiting: string[] = [];
  let waitingBytes = 0;
  let handle: FileHandle | undefined;
  let size = 0;
  let writing: Promise<void> | undefined;
  let stopped = false;
  let trouble = '';

  const close = async (): Promise<void> => {
    const closing = handle;
    handle = undefined;
    await closing?.close().catch(() => undefined);
  };

  /** Opens the file at its end, on a line of its own: what wrote before may have died in the middle of one. */
  const openFile = async (): Promise<FileHandle> => {
    const opened = await open(file, 'a+', 0o640);
    try {
      const stats = await opened.stat();
      if (!stats.isFile()) throw new Error('it is not a regular file');
      size = stats.size;
      if (size > 0) {
        const { buffer } = await opened.read(Buffer.alloc(1), 0, 1, size - 1);
        if (buffer[0] !== 0x0a) {
          await opened.appendFile('\n');
          size += 1;
        }
      }
    } catch (error) {
      await opened.close();
      throw error;
    }
    handle = opened;
    return opened;
  };

  const rotate = async (): Promise<void> => {
    await close();
    for (let number = maxFiles - 1; number >= 1; number--) {
      const from = number === 1 ? file : `${file}.${number - 1}`;
      await rename(from, `${file}.${number}`).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      });
    }
  };

  /** Whether the name still leads to the open file: others may have moved or removed it. */
  const isInPlace = async (opened: FileHandle): Promise<boolean> => {
    const [named, own] = await Promise.all([stat(file, { bigint: true }), opened.stat({ bigint: true })]);
    return named.ino === own.ino && named.dev === own.dev;
  };

  const append = async (text: string): Promise<void> => {
    if (handle !== undefined && !(await isInPlace(handle).catch(() => false))) await close();
    let opened = handle ?? (await openFile());
    const bytes = Buffer.byteLength(text);
    if (size > 0 && size + bytes > maxFileBytes) {
      await rotate();
      opened = await openFile();
    }
    await opened.appendFile(text);
    size += bytes;
  };

  const drain = async (): Promise<void> => {
    while (waiting.length > 0) {
      let count = 0;
      let bytes = 0;
      while (count < waiting.length && (count === 0 || bytes < CHUNK_BYTES)) {
        bytes += Buffer.byteLength(waiting[count] ?? '');
        count++;
      }
      try {
        await append(waiting.slice(0, count).join(''));
        waiting = waiting.slice(count);
        waitingBytes -= bytes;
        counters.add('violation_lines_written', count);
        trouble = '';
      } catch (error) {
        counters.add('violation_write_errors');
        // What was half written ends with the file; openFile begins a new line.
        await close();
        const problem = problemOf(error);
        if (problem !== trouble) log.error({ file, problem }, 'violations cannot be written; trying again');
        trouble = problem;
        if (stopped) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
  };

  const startDraining = (): void => {
    writing ??= drain().finally(() => {
      writing = undefined;
      // Came after the last look at what waits.
      if (waiting.length > 0 && !stopped) startDraining();
    });
  };

  return {
    async start() {
      try {
        await openFile();
      } catch (cause) {
        throw new CommandError(`cannot write the violations file ${file}: ${problemOf(cause)}`, { cause });
      }
    },
    write(line) {
      const bytes = Buffer.byteLength(line) + 1;
      if (stopped || waitingBytes + bytes > maxWaitingBytes) {
        counters.add('violation_lines_dropped');
        return false;
      }
      waiting.push(`${line}\n`);
      waitingBytes += bytes;
      startDraining();
      return true;
    },
    async stop(timeoutMs) {
      stopped = true;
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      await Promise.race([writing, promise]);
      clearTimeout(timer);
      counters.add('violation_lines_dropped', waiting.length);
      await close();
    },
  };
}
