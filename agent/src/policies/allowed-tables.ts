import { LIST_ID_BYTES } from '../kernel/gen/abi.ts';
import type { AllowedTable } from '../kernel/maps.ts';
import { isNativeError } from '../kernel/native.ts';
import type { PathInterner } from './path-interner.ts';

/** Entries of one batch: long enough to spare system calls, short enough to let others have their turn. */
const BATCH_ENTRIES_MAX = 8_192;
/** Batches under way at once: the kernel works on one while the next is put together. */
const BATCHES_MAX = 2;
const VALUE_BYTES = 4;

/** A table cannot take all paths of a list. */
export class TableFullError extends Error {
  override readonly name = 'TableFullError';
  readonly keyBytes: number;

  constructor(keyBytes: number, capacity: number) {
    super(
      `the table for paths of up to ${keyBytes - LIST_ID_BYTES} bytes is full (it holds ${capacity}); ` +
        'start the agent with a higher --capacity',
    );
    this.keyBytes = keyBytes;
  }
}

/** One list as the tables take it: paths by number. */
export interface ListEntries {
  readonly id: number;
  readonly paths: Uint32Array;
}

/** The tables of allowed paths in the kernel. Work is done off the loop, that of several callers at once. */
export interface AllowedTables {
  /**
   * Writes a list's entries and reads them back. Rejects with a {@link TableFullError} or a NativeError; then
   * nothing of the list is left.
   */
  add(list: ListEntries): Promise<void>;
  /** Rejects with a NativeError; what is left then is found by nobody. */
  remove(list: ListEntries): Promise<void>;
  /** How many of the list's entries the kernel has. */
  present(list: ListEntries): Promise<number>;
  /** How many of the list's paths belong into the table of that key size. */
  entriesIn(list: { readonly paths: Uint32Array }, keyBytes: number): number;
  capacity(keyBytes: number): number;
  /** Longest path that a table takes, in bytes. */
  readonly pathBytesMax: number;
}

interface Job {
  readonly list: ListEntries;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** The keys of some lists that belong into one table. */
interface TableKeys {
  readonly table: AllowedTable;
  readonly keys: Buffer;
  readonly count: number;
}

export function createAllowedTables(tables: readonly AllowedTable[], paths: PathInterner): AllowedTables {
  const add = batched(addAll, removeAll);
  const remove = batched(removeAll);

  async function addAll(lists: readonly ListEntries[]): Promise<void> {
    const perTable = keysByTable(tables, paths, lists);
    await Promise.all(
      perTable.map(async ({ table, keys, count }) => {
        try {
          await table.map.updateMany(keys, new Uint8Array(count * VALUE_BYTES).fill(1), count);
        } catch (error) {
          if (isNativeError(error) && error.code === 'E2BIG') {
            throw new TableFullError(table.keyBytes, table.map.maxEntries);
          }
          throw error;
        }
        const found = await table.map.lookupMany(keys, count);
        const missing = found.indexOf(0);
        if (missing >= 0)
          throw new Error(`an entry of table ${table.map.name} is gone just after it was written`);
      }),
    );
  }

  async function removeAll(lists: readonly ListEntries[]): Promise<void> {
    await Promise.all(
      keysByTable(tables, paths, lists).map(({ table, keys, count }) => table.map.deleteMany(keys, count)),
    );
  }

  return {
    add,
    remove,
    async present(list) {
      const found = await Promise.all(
        keysByTable(tables, paths, [list]).map(({ table, keys, count }) => table.map.lookupMany(keys, count)),
      );
      return found.reduce((sum, flags) => sum + flags.reduce((count, flag) => count + flag, 0), 0);
    },
    entriesIn({ paths: list }, keyBytes) {
      const smaller = Math.max(
        0,
        ...tables.map((table) => table.keyBytes).filter((bytes) => bytes < keyBytes),
      );
      return list.reduce((count, path) => {
        const bytes = paths.byteLength(path) + LIST_ID_BYTES;
        return bytes > smaller && bytes <= keyBytes ? count + 1 : count;
      }, 0);
    },
    capacity: (keyBytes) => tables.find((table) => table.keyBytes === keyBytes)?.map.maxEntries ?? 0,
    pathBytesMax: Math.max(...tables.map(({ keyBytes }) => keyBytes)) - LIST_ID_BYTES,
  };
}

/**
 * Collects what is asked for in one turn of the loop, and while batches are under way. Where `undo` is given and a
 * batch fails, its lists are tried again one by one while nothing else runs: what does not fit by itself must not
 * keep anything else out, not even for a moment.
 */
function batched(
  run: (lists: readonly ListEntries[]) => Promise<void>,
  undo?: (lists: readonly ListEntries[]) => Promise<void>,
): (list: ListEntries) => Promise<void> {
  const waiting: Job[] = [];
  const doubtful: Job[] = [];
  let running = 0;
  let alone = false;
  let scheduled = false;

  const runBatch = async (batch: readonly Job[]): Promise<void> => {
    try {
      await run(batch.map(({ list }) => list));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      if (undo === undefined) for (const { reject } of batch) reject(asError(error));
      else doubtful.push(...batch);
    }
  };
  const runAlone = async ({ list, resolve, reject }: Job): Promise<void> => {
    try {
      await run([list]);
      resolve();
    } catch (error) {
      // What is left of it is found by nobody, and is looked for at the next start.
      await undo?.([list]).catch(() => undefined);
      reject(asError(error));
    }
  };
  const runDoubtful = async (): Promise<void> => {
    const jobs = doubtful.splice(0);
    await undo?.(jobs.map(({ list }) => list)).catch(() => undefined);
    for (const job of jobs) await runAlone(job);
  };
  const pump = (): void => {
    if (alone) return;
    if (doubtful.length > 0) {
      if (running > 0) return;
      alone = true;
      void runDoubtful().finally(() => {
        alone = false;
        pump();
      });
      return;
    }
    while (running < BATCHES_MAX && waiting.length > 0) {
      running++;
      void runBatch(takeBatch(waiting)).finally(() => {
        running--;
        pump();
      });
    }
  };

  return (list) => {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    waiting.push({ list, resolve: () => resolve(undefined), reject });
    if (!scheduled) {
      scheduled = true;
      setImmediate(() => {
        scheduled = false;
        pump();
      });
    }
    return promise;
  };
}

function takeBatch(waiting: Job[]): Job[] {
  let entries = 0;
  let jobs = 0;
  for (const { list } of waiting) {
    entries += list.paths.length;
    if (jobs > 0 && entries > BATCH_ENTRIES_MAX) break;
    jobs++;
  }
  return waiting.splice(0, jobs);
}

/** Throws a RangeError for a path that no table takes; callers check that first. */
function keysByTable(
  tables: readonly AllowedTable[],
  paths: PathInterner,
  lists: readonly ListEntries[],
): TableKeys[] {
  const counts = new Uint32Array(tables.length);
  const tableOf = (path: number): number => {
    const bytes = paths.byteLength(path) + LIST_ID_BYTES;
    const index = tables.findIndex(({ keyBytes }) => bytes <= keyBytes);
    if (index < 0) throw new RangeError(`a path of ${bytes - LIST_ID_BYTES} bytes fits into no table`);
    return index;
  };
  for (const { paths: list } of lists) {
    for (const path of list) {
      const index = tableOf(path);
      counts[index] = (counts[index] ?? 0) + 1;
    }
  }
  const filled = new Uint32Array(tables.length);
  const buffers = tables.map(({ keyBytes }, index) => Buffer.alloc(keyBytes * (counts[index] ?? 0)));
  for (const { id, paths: list } of lists) {
    for (const path of list) {
      const index = tableOf(path);
      const buffer = buffers[index];
      const offset = (filled[index] ?? 0) * (tables[index]?.keyBytes ?? 0);
      if (buffer === undefined) continue;
      buffer.writeUInt32LE(id, offset);
      paths.write(path, buffer, offset + LIST_ID_BYTES);
      filled[index] = (filled[index] ?? 0) + 1;
    }
  }
  return tables
    .map((table, index) => ({ table, keys: buffers[index] ?? Buffer.alloc(0), count: counts[index] ?? 0 }))
    .filter(({ count }) => count > 0);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
