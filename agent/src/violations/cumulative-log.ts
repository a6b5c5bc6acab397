/** Superseded entries that are kept for a reader that has taken them and not acknowledged them, beyond one per key. */
const MAX_SUPERSEDED = 10_000;
/** Entries whose subject is gone that wait for their acknowledgement. */
const MAX_ENDED = 10_000;
/** By how much that may be exceeded before the oldest are forgotten. */
const FORGETTING = 1.125;
/** Stale places of the order that are not worth removing. */
const MIN_STALE = 1_024;

/** One state of a key. Never changes once a reader has taken it. */
export interface LogEntry<T> {
  readonly key: string;
  readonly sequence: number;
  readonly value: T;
  /** The entry of this key before, which readers took earlier; what came to it since is the difference. */
  readonly previous: { readonly sequence: number; readonly value: T } | undefined;
}

/**
 * Cumulative states by key, each with the sequence number of its last change. Reading destroys nothing.
 *
 * An entry that was read is settled: when its key changes again, the new state is a new entry that names the one
 * before as `previous`, and the read one stays until it is acknowledged. A reader that takes each entry once, in
 * order of sequence, and adds up the differences counts exactly, wherever its cursor was stored and however often it
 * reads again; a reader that only wants the newest state takes the last entry of each key.
 */
export interface CumulativeLog<T> {
  /** Random; the same for as long as sequence numbers go on, across restarts if the log is kept on disk. */
  readonly incarnation: string;
  /** Of the newest change; 0 before the first. */
  readonly sequence: number;
  /** `value` is the new state of the key, not a difference. */
  put(key: string, value: T): void;
  /** Its subject is gone: the key is forgotten once its last entry is acknowledged. A later `put` revives it. */
  remove(key: string): void;
  /**
   * At most `limit` entries after `cursor`, by sequence. `cursor` in the answer continues there; `more` says that there
   * are more now. A reader that acknowledges nothing for long gets nothing new until it does. A cursor beyond
   * `sequence` was not given by this log; there is nothing after it.
   */
  changedSince(
    cursor: number,
    limit: number,
  ): { readonly entries: readonly LogEntry<T>[]; readonly cursor: number; readonly more: boolean };
  /** What was read up to `cursor` will not be asked for again. Cursors that no reader was given are cut to those. */
  acknowledge(cursor: number): void;
  /** Called after there is something new to read, once for many changes. @returns ends the calls */
  onChange(listener: () => void): () => void;
}

/** An entry with what becomes of it. */
export interface KeptEntry<T> extends LogEntry<T> {
  readonly ended: boolean;
}

/** A log as it was kept elsewhere. */
export interface RecoveredLog<T> {
  readonly incarnation: string;
  /** At least that of every entry. */
  readonly sequence: number;
  readonly acknowledged: number;
  /** By sequence. */
  readonly entries: readonly KeptEntry<T>[];
}

/** The log with what its keeper needs. */
export interface KeptLog<T> extends CumulativeLog<T> {
  readonly acknowledged: number;
  /** Keys, and all entries: superseded ones that nobody acknowledged count too. */
  readonly size: { readonly keys: number; readonly entries: number };
  /** Newest state of a key. */
  get(key: string): T | undefined;
  /** Newest state of each key whose subject is not gone. */
  values(): IterableIterator<[key: string, value: T]>;
  /** Every entry, by sequence. */
  entries(): KeptEntry<T>[];
  /** Lets readers have entries up to `sequence`. Only where the log was made with `held`. */
  release(sequence: number): void;
  /** Forgets the oldest `count` entries of subjects that are gone, acknowledged or not. @returns how many there were */
  forgetEnded(count: number): number;
}

export interface LogOptions<T> {
  readonly incarnation: string;
  readonly recovered?: RecoveredLog<T>;
  /** Entries wait for `release` before readers get them. */
  readonly held?: boolean;
  /** Told of each new entry and of the unread one that it replaces. Must not call the log. */
  readonly onEntry?: (entry: LogEntry<T>, replaced: LogEntry<T> | undefined) => void;
  readonly onEnded?: (key: string) => void;
  readonly onAcknowledged?: (cursor: number) => void;
  /** Told how many entries of subjects that are gone were forgotten without an acknowledgement. */
  readonly onForgotten?: (count: number) => void;
  readonly maxSuperseded?: number;
  readonly maxEnded?: number;
}

interface Entry<T> extends LogEntry<T> {
  ended: boolean;
  /** In force: the newest of its key, or superseded and not acknowledged. */
  kept: boolean;
}

/** See {@link CumulativeLog}. Time for a change does not depend on how many entries there are. */
export function createCumulativeLog<T>(options: LogOptions<T>): KeptLog<T> {
  const { recovered, held = false, maxSuperseded = MAX_SUPERSEDED, maxEnded = MAX_ENDED } = options;
  const { incarnation } = recovered ?? options;
  /** By sequence; some are not kept any more. */
  let order: Entry<T>[] = [];
  let stale = 0;
  const newest = new Map<string, Entry<T>>();
  /** Keys whose subject is gone, oldest first. */
  const ended = new Set<string>();
  let superseded = 0;
  let sequence = recovered?.sequence ?? 0;
  let acknowledged = recovered?.acknowledged ?? 0;
  // Whoever kept the log may have given anything of it to a reader.
  let handedOut = sequence;
  let released = sequence;
  const listeners = new Set<() => void>();
  let notifying = false;

  const append = (entry: Entry<T>): void => {
    order.push(entry);
    newest.set(entry.key, entry);
  };
  const drop = (entry: Entry<T>): void => {
    entry.kept = false;
    if (++stale < MIN_STALE || stale * 2 < order.length) return;
    order = order.filter(({ kept }) => kept);
    stale = 0;
  };
  const forget = (entry: Entry<T>): void => {
    ended.delete(entry.key);
    newest.delete(entry.key);
    drop(entry);
  };
  const forgetEnded = (count: number): number => {
    let forgotten = 0;
    for (const key of ended) {
      if (forgotten >= count) break;
      const entry = newest.get(key);
      if (entry !== undefined) forget(entry);
      forgotten++;
    }
    return forgotten;
  };
  const notify = (): void => {
    if (notifying) return;
    notifying = true;
    queueMicrotask(() => {
      notifying = false;
      for (const listener of listeners) listener();
    });
  };

  for (const entry of recovered?.entries ?? []) {
    const { key, value, previous, sequence: at, ended: isEnded } = entry;
    if (newest.has(key)) superseded++;
    append({ key, sequence: at, value, previous, ended: isEnded, kept: true });
  }
  for (const [key, entry] of newest) if (entry.ended) ended.add(key);

  const log: KeptLog<T> = {
    incarnation,
    get sequence() {
      return sequence;
    },
    get acknowledged() {
      return acknowledged;
    },
    get size() {
      return { keys: newest.size, entries: order.length - stale };
    },
    put(key, value) {
      const known = newest.get(key);
      const isRead = known !== undefined && known.sequence <= handedOut;
      const previous = isRead ? { sequence: known.sequence, value: known.value } : known?.previous;
      const entry: Entry<T> = { key, sequence: ++sequence, value, previous, ended: false, kept: true };
      if (known?.ended === true) ended.delete(key);
      if (isRead && known.sequence > acknowledged) superseded++;
      else if (known !== undefined) drop(known);
      append(entry);
      options.onEntry?.(entry, isRead ? undefined : known);
      if (!held) log.release(sequence);
    },
    remove(key) {
      const entry = newest.get(key);
      if (entry === undefined || entry.ended) return;
      entry.ended = true;
      ended.add(key);
      options.onEnded?.(key);
      if (entry.sequence <= acknowledged) forget(entry);
      // Several at once: the oldest are found by passing over those forgotten before.
      else if (ended.size > maxEnded * FORGETTING) options.onForgotten?.(forgetEnded(ended.size - maxEnded));
    },
    changedSince(cursor, limit) {
      // What was not read yet is only shown while its next state can be kept beside it.
      const end = superseded >= maxSuperseded + newest.size ? handedOut : Math.max(released, handedOut);
      const entries: LogEntry<T>[] = [];
      let last = Number.isFinite(cursor) ? Math.max(cursor, 0) : 0;
      let more = false;
      for (let index = firstAfter(order, last); index < order.length; index++) {
        const entry = order[index];
        if (entry === undefined || entry.sequence > end) break;
        if (!entry.kept) continue;
        if (entries.length >= limit) {
          more = true;
          break;
        }
        entries.push(entry);
        last = entry.sequence;
      }
      if (entries.length > 0) handedOut = Math.max(handedOut, last);
      return { entries, cursor: last, more };
    },
    acknowledge(cursor) {
      const upTo = Math.min(Math.floor(cursor), handedOut);
      if (!(upTo > acknowledged)) return;
      const begin = firstAfter(order, acknowledged);
      acknowledged = upTo;
      const settled = order.slice(begin, firstAfter(order, upTo));
      for (const entry of settled) {
        if (!entry.kept) continue;
        if (newest.get(entry.key) !== entry) {
          superseded--;
          drop(entry);
        } else if (entry.ended) {
          forget(entry);
        }
      }
      options.onAcknowledged?.(upTo);
      // A reader may have been waiting for room.
      notify();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    get: (key) => newest.get(key)?.value,
    *values() {
      for (const [key, entry] of newest) if (!entry.ended) yield [key, entry.value];
    },
    entries: () => order.filter(({ kept }) => kept),
    release(upTo) {
      if (upTo <= released) return;
      released = Math.min(upTo, sequence);
      notify();
    },
    forgetEnded,
  };
  return log;
}

/** Index of the first entry whose sequence is greater. */
function firstAfter(order: readonly { readonly sequence: number }[], sequence: number): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = order[middle];
    if (entry !== undefined && entry.sequence <= sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}
