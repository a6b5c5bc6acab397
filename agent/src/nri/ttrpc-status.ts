/** The google.rpc codes that this protocol's two ends give or look for. */
export const TtrpcCode = {
  ok: 0,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  unimplemented: 12,
  unavailable: 14,
} as const;

/**
 * Longest error text that is sent, in bytes: a reply then fits into one mux frame, and the text
 * still fits into a Kubernetes event several times.
 */
export const STATUS_MESSAGE_MAX_BYTES = 3_072;

/** A call failed; `code` is a google.rpc code, whichever side it comes from. */
export class TtrpcStatusError extends Error {
  override readonly name = 'TtrpcStatusError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Code and text under which an error goes out to the peer: always valid UTF-8, always bounded. */
export function statusOf(error: unknown): { code: number; message: string } {
  const code = error instanceof TtrpcStatusError ? error.code : TtrpcCode.unknown;
  const text = error instanceof Error ? error.message : String(error);
  return { code, message: truncateUtf8(text.toWellFormed(), STATUS_MESSAGE_MAX_BYTES) };
}

function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.alloc(maxBytes);
  return text.slice(0, new TextEncoder().encodeInto(text, bytes).read);
}
