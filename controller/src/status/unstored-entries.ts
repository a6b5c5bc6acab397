/** An entry that was read and is not yet stored in a status. */
export interface UnstoredEntry<T> {
  readonly sequence: number;
  readonly value: T;
  readonly previousCount: number;
  /** Milliseconds, of the monotonic clock. */
  readonly readAtMs: number;
  /** Told when it is stored, or never will be. */
  readonly settled: (() => void)[];
}

/** Where entries come from: a node, and the incarnation of its sequence. */
export interface EntrySource {
  readonly nodeName: string;
  readonly incarnation: string;
}

/** Entries of one source that concern one object, in order. */
export interface SourceQueue<T> extends EntrySource {
  readonly entries: Map<number, UnstoredEntry<T>>;
}

/** Entries by the object, `namespace/name`, into whose status they go. */
export interface UnstoredEntries<T> {
  /** Takes an entry; one that is there already, from an earlier reading, only gets another `settled`. */
  add(key: string, source: EntrySource, entry: Omit<UnstoredEntry<T>, 'settled'>, settled: () => void): void;
  of(key: string): readonly SourceQueue<T>[];
  /** What a status holds by now needs to be kept no longer. */
  settle(key: string, source: EntrySource, sequences: Iterable<number>): void;
  keys(): IterableIterator<string>;
  readonly size: number;
  /** When the oldest was read; undefined where there is none. */
  oldestMs(): number | undefined;
}

/** See {@link UnstoredEntries}. */
export function unstoredEntries<T>(): UnstoredEntries<T> {
  const byKey = new Map<string, Map<string, SourceQueue<T>>>();
  let size = 0;
  const sourceKey = ({ nodeName, incarnation }: EntrySource): string =>
    JSON.stringify([nodeName, incarnation]);
  return {
    add(key, source, entry, settled) {
      const queues = byKey.get(key) ?? new Map<string, SourceQueue<T>>();
      byKey.set(key, queues);
      const at = sourceKey(source);
      const { nodeName, incarnation } = source;
      const queue: SourceQueue<T> = queues.get(at) ?? { nodeName, incarnation, entries: new Map() };
      queues.set(at, queue);
      const known = queue.entries.get(entry.sequence);
      if (known !== undefined) {
        known.settled.push(settled);
        return;
      }
      queue.entries.set(entry.sequence, { ...entry, settled: [settled] });
      size++;
    },
    of: (key) => [...(byKey.get(key)?.values() ?? [])],
    settle(key, source, sequences) {
      const queues = byKey.get(key);
      const at = sourceKey(source);
      const entries = queues?.get(at)?.entries;
      if (queues === undefined || entries === undefined) return;
      for (const sequence of sequences) {
        const entry = entries.get(sequence);
        if (entry === undefined) continue;
        entries.delete(sequence);
        size--;
        for (const settled of entry.settled) settled();
      }
      if (entries.size === 0) queues.delete(at);
      if (queues.size === 0) byKey.delete(key);
    },
    keys: () => byKey.keys(),
    get size() {
      return size;
    },
    oldestMs() {
      let oldest: number | undefined;
      for (const queues of byKey.values()) {
        for (const { entries } of queues.values()) {
          for (const { readAtMs } of entries.values()) {
            if (oldest === undefined || readAtMs < oldest) oldest = readAtMs;
            break;
          }
        }
      }
      return oldest;
    },
  };
}
