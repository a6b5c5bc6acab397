import protobuf from 'protobufjs/light.js';

const LENGTH_DELIMITED = 2;

/** Where a field stands in a message: its tag begins at `start`, what it holds at `content`, and it ends at `end`. */
export type TakeField = (number: number, start: number, content: number, end: number) => void;

/**
 * Tells of each field of a message, in order, without reading what it holds.
 *
 * @throws Error for bytes that are no message
 */
export function eachField(bytes: Uint8Array, take: TakeField): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    let content = reader.pos;
    if ((tag & 7) === LENGTH_DELIMITED) {
      const length = reader.uint32();
      content = reader.pos;
      reader.skip(length);
    } else reader.skipType(tag & 7);
    take(tag >>> 3, start, content, reader.pos);
  }
}
