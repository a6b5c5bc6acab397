/** `google.protobuf.Timestamp` as it stands in a message. */
export interface WireTimestamp {
  readonly seconds: number | bigint;
  readonly nanos: number;
}

/** A number of 64 bits: given as number, read as bigint. */
export type WireLong = number | bigint;

/** The time, to the millisecond; null for a text that is none. */
export function timestampToWire(text: string): WireTimestamp | null {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return null;
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: (ms - seconds * 1000) * 1_000_000 };
}

/** The time as RFC 3339 writes it, to the millisecond; empty for none and for what no `Date` can hold. */
export function timestampFromWire(time: WireTimestamp | null): string {
  if (time === null) return '';
  const date = new Date(Number(time.seconds) * 1000 + Math.floor(time.nanos / 1_000_000));
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/** The name that an enum's number stands for; `unknown` for a number that this version does not have. */
export function nameOfNumber<const N extends readonly string[]>(
  names: N,
  number: number,
): N[number] | 'unknown' {
  return names[number] ?? 'unknown';
}

/** Text that any reader of UTF-8 accepts: half a surrogate pair becomes U+FFFD. */
export function wireText(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}
