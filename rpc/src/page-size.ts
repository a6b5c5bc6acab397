/** Tag, length and number of one field at the most. */
const FIELD_BYTES = 16;

/**
 * Bytes that a value takes at most when it stands in a message, by its texts and the number of its fields: cheap
 * enough to be asked for every entry of a page.
 */
export function encodedBytesAtMost(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value) + FIELD_BYTES;
  if (typeof value !== 'object' || value === null) return FIELD_BYTES;
  let bytes = FIELD_BYTES;
  if (value instanceof Map) {
    for (const [key, entry] of value) bytes += encodedBytesAtMost(key) + encodedBytesAtMost(entry);
  } else {
    for (const entry of Object.values(value)) bytes += encodedBytesAtMost(entry);
  }
  return bytes;
}
