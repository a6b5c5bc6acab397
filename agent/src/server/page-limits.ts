import { encodedBytesAtMost } from '@runtime-enforcer/rpc/page-size';

/**
 * A page is done before the entry that would exceed this: far below gRPC's limit, whatever one entry holds, and
 * written within a few milliseconds, in which the agent does nothing else.
 */
const PAGE_BYTES = 64 * 1024;

/**
 * The first of the items that fit into one page, at least one, each made into the entry that stands there. `full` says
 * that there are more items.
 */
export function fillPage<I, E>(
  items: Iterable<I>,
  entryOf: (item: I) => E,
  maxBytes = PAGE_BYTES,
): { readonly page: readonly E[]; readonly full: boolean } {
  const page: E[] = [];
  let bytes = 0;
  for (const item of items) {
    const entry = entryOf(item);
    bytes += encodedBytesAtMost(entry);
    if (bytes > maxBytes && page.length > 0) return { page, full: true };
    page.push(entry);
  }
  return { page, full: false };
}
