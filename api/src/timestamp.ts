import { quote } from './field-error.ts';
import { report, type Check } from './schema.ts';

const RFC3339 =
  /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;
const EXPECTED = 'a time such as 2026-01-31T12:00:00Z';

/** Whether a text is a time as RFC 3339 writes it. */
export function isTimestamp(input: string): boolean {
  const date = RFC3339.exec(input)?.[1];
  if (date === undefined) return false;
  // Date.parse takes 30 February for 2 March.
  const midnight = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date);
}

/** A time, kept as the text it was. */
export const timestamp: Check<string> = (input, at, findings) => {
  if (typeof input === 'string' && isTimestamp(input)) return input;
  const shown = typeof input === 'string' ? quote(input) : 'what stands here';
  return report(findings, at, { message: `${shown} is not a time`, expected: EXPECTED });
};

/** The earlier of two times, to the millisecond; the first of equals. */
export function earlier(one: string, other: string): string {
  return Date.parse(other) < Date.parse(one) ? other : one;
}

/** The later of two times, to the millisecond; the first of equals. */
export function later(one: string, other: string): string {
  return Date.parse(other) > Date.parse(one) ? other : one;
}
