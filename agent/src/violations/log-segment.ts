import type { LogEntry } from './cumulative-log.ts';

/** Version of the lines below; a segment of another version is not read. */
export const SEGMENT_VERSION = 1;
const NUMBER_DIGITS = 12;
const NAME = /^(.+)-([0-9]{12})\.jsonl$/;

/** First line of each segment. */
export interface SegmentHeader {
  readonly version: typeof SEGMENT_VERSION;
  readonly incarnation: string;
  readonly sequence: number;
  readonly acknowledged: number;
  /** What follows is everything that there is; earlier segments are out of date. */
  readonly snapshot: boolean;
}

/**
 * A line of a segment, by its only key of one letter: `s` an entry, `b` one that is only there as the previous state
 * of the next, `e` the key of a subject that is gone, `a` an acknowledged cursor.
 */
export type SegmentLine<T> =
  | { readonly s: number; readonly k: string; readonly v: T; readonly p?: number }
  | { readonly b: number; readonly k: string; readonly v: T }
  | { readonly e: string }
  | { readonly a: number };

/** `NAME-000000000012.jsonl` */
export function segmentName(name: string, number: number): string {
  return `${name}-${String(number).padStart(NUMBER_DIGITS, '0')}.jsonl`;
}

/** The number in a segment's name; undefined for other files. */
export function segmentNumber(name: string, file: string): number | undefined {
  const match = NAME.exec(file);
  return match?.[1] === name ? Number(match[2]) : undefined;
}

export function headerLine(header: SegmentHeader): string {
  return `${JSON.stringify(header)}\n`;
}

export function entryLine({ key, sequence, value, previous }: LogEntry<unknown>): string {
  const line: SegmentLine<unknown> = {
    s: sequence,
    k: key,
    v: value,
    ...(previous !== undefined && { p: previous.sequence }),
  };
  return `${JSON.stringify(line)}\n`;
}

export function baseLine(key: string, base: { readonly sequence: number; readonly value: unknown }): string {
  return `${JSON.stringify({ b: base.sequence, k: key, v: base.value } satisfies SegmentLine<unknown>)}\n`;
}

export function endedLine(key: string): string {
  return `${JSON.stringify({ e: key } satisfies SegmentLine<never>)}\n`;
}

export function acknowledgedLine(cursor: number): string {
  return `${JSON.stringify({ a: cursor } satisfies SegmentLine<never>)}\n`;
}

/** The header in a segment's first line, or undefined if it is none that this program understands. */
export function asHeader(value: unknown): SegmentHeader | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { version, incarnation, sequence, acknowledged, snapshot } = value as Partial<
    Record<keyof SegmentHeader, unknown>
  >;
  if (version !== SEGMENT_VERSION || typeof incarnation !== 'string' || incarnation === '') return undefined;
  if (!isPosition(sequence) || !isPosition(acknowledged) || typeof snapshot !== 'boolean') return undefined;
  return { version, incarnation, sequence, acknowledged, snapshot };
}

/**
 * A line in its type, or undefined if it is none.
 * @param asValue takes what stands for a value, and returns undefined for what cannot be one
 */
export function asLine<T>(
  value: unknown,
  asValue: (value: unknown) => T | undefined,
): SegmentLine<T> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { s, b, k, v, p, e, a } = value as Partial<Record<'s' | 'b' | 'k' | 'v' | 'p' | 'e' | 'a', unknown>>;
  if (isPosition(a)) return { a };
  if (typeof e === 'string') return { e };
  if (typeof k !== 'string') return undefined;
  const state = asValue(v);
  if (state === undefined) return undefined;
  if (isPosition(b)) return { b, k, v: state };
  if (!isPosition(s)) return undefined;
  if (p === undefined) return { s, k, v: state };
  return isPosition(p) && p < s ? { s, k, v: state, p } : undefined;
}

function isPosition(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
