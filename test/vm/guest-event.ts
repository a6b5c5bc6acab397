/** Starts a record in the output of a guest, as in JSON text sequences (RFC 7464). */
const RECORD_SEPARATOR = '\u001e';

/** What the reporter inside a guest tells the host, one line each. */
export type GuestEvent =
  | { event: 'running'; name: string }
  | { event: 'passed'; name: string; durationMs: number }
  | { event: 'failed'; name: string; durationMs: number; message: string }
  | { event: 'skipped'; name: string; reason: string }
  | { event: 'end' };

/** One line, without a line end inside. */
export function encodeGuestEvent(event: GuestEvent): string {
  return `${RECORD_SEPARATOR}${JSON.stringify(event)}\n`;
}

/**
 * Takes a line of the output apart: a test may have printed something without a line end in front of a record.
 *
 * @returns the text that is no record, and the record; what looks like a record and is none stays text
 */
export function decodeGuestLine(line: string): { text: string; event: GuestEvent | undefined } {
  const start = line.lastIndexOf(RECORD_SEPARATOR);
  if (start < 0) return { text: line, event: undefined };
  try {
    const value: unknown = JSON.parse(line.slice(start + 1));
    if (isGuestEvent(value)) return { text: line.slice(0, start), event: value };
  } catch {
    // Not ours: somebody printed a record separator.
  }
  return { text: line, event: undefined };
}

function isGuestEvent(value: unknown): value is GuestEvent {
  if (typeof value !== 'object' || value === null || !('event' in value)) return false;
  const has = (name: string, type: string): boolean =>
    typeof (value as Readonly<Record<string, unknown>>)[name] === type;
  switch (value.event) {
    case 'end':
      return true;
    case 'running':
      return has('name', 'string');
    case 'passed':
      return has('name', 'string') && has('durationMs', 'number');
    case 'failed':
      return has('name', 'string') && has('durationMs', 'number') && has('message', 'string');
    case 'skipped':
      return has('name', 'string') && has('reason', 'string');
    default:
      return false;
  }
}
