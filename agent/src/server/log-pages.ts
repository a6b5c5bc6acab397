import type { Cursor, ReportedPage } from '@runtime-enforcer/rpc/reported';
import type { CumulativeLog } from '../violations/cumulative-log.ts';
import { fillPage } from './page-limits.ts';

/** Entries that are looked at for one page: making and writing it takes the loop a millisecond. */
const MAX_ENTRIES = 64;

/** What a reader of a cumulative log needs of it. */
export type ReadableLog<T> = Pick<
  CumulativeLog<T>,
  'incarnation' | 'changedSince' | 'acknowledge' | 'onChange'
>;

/**
 * The next page behind a cursor; undefined when there is nothing new. A reader that comes with the cursor of another
 * incarnation is told so, once, also when there is nothing to read.
 * @param countOf what the log's values count
 */
export function logPage<T>(
  log: ReadableLog<T>,
  cursor: Cursor,
  countOf: (value: T) => number,
): ReportedPage<T> | undefined {
  const { incarnation } = log;
  const resync = cursor.incarnation !== incarnation;
  const found = log.changedSince(resync ? 0 : cursor.sequence, MAX_ENTRIES);
  if (!resync && found.entries.length === 0) return undefined;
  const { page: entries, full } = fillPage(found.entries, ({ sequence, value, previous }) => ({
    sequence,
    value,
    previousCount: previous === undefined ? 0 : countOf(previous.value),
  }));
  const more = found.more || full;
  const sequence = entries.at(-1)?.sequence ?? 0;
  return { cursor: { incarnation, sequence }, resync, entries, more, refused: 0, refusals: [] };
}

/** @returns whether the cursor is of this log's sequence; only then does it do something */
export function acknowledge<T>(log: ReadableLog<T>, cursor: Cursor | undefined): boolean {
  if (cursor?.incarnation !== log.incarnation) return false;
  log.acknowledge(cursor.sequence);
  return true;
}
