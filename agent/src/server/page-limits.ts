import { encodedBytesAtMost } from '@runtime-enforcer/rpc/page-size';

/** A page is done with the entry that reaches this: far below gRPC's limit, whatever that entry holds. */
export const PAGE_BYTES = 256 * 1024;

/** How many of the entries, from the first on, fit into one page: at least one. */
export function entriesInPage(entries: readonly unknown[], pageBytes = PAGE_BYTES): number {
  let bytes = 0;
  for (const [index, entry] of entries.entries()) {
    bytes += encodedBytesAtMost(entry);
    if (bytes > pageBytes) return Math.max(1, index);
  }
  return entries.length;
}
