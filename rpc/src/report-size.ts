import protobuf from 'protobufjs/light.js';

/** Field numbers of the pages in `Report` of proto/agent.proto. */
const PAGES: ReadonlySet<number> = new Set([2, 3, 4]);
/** An agent's page of 64 KiB has room for a tenth of them. */
const MAX_PAGE_FIELDS = 10_000;
const LENGTH_DELIMITED = 2;

/**
 * Refuses a report whose pages hold more than an agent puts there: two bytes on the wire make an entry, and an entry
 * takes hundreds of bytes, and its time, once it is read.
 *
 * @throws Error also for bytes that are no message
 */
export function assertReadable(bytes: Uint8Array): void {
  const reader = protobuf.Reader.create(bytes);
  let fields = 0;
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const isPage = (tag & 7) === LENGTH_DELIMITED && PAGES.has(tag >>> 3);
    if (!isPage) {
      reader.skipType(tag & 7);
      continue;
    }
    const length = reader.uint32();
    const end = Math.min(reader.pos + length, reader.len);
    while (reader.pos < end) {
      if (++fields > MAX_PAGE_FIELDS) {
        throw new Error(
          `a report holds more than ${MAX_PAGE_FIELDS} entries; no agent of the product sends so many`,
        );
      }
      reader.skipType(reader.uint32() & 7);
    }
  }
}
