import { NO_CURSOR, type Cursor } from './reported.ts';
import { wireText, type WireLong } from './wire-values.ts';

/** `Cursor` of proto/agent.proto. */
export interface WireCursor {
  readonly incarnation: string;
  readonly sequence: WireLong;
}

/** Longest incarnation that is taken for one; ours have 36 characters. */
const MAX_INCARNATION_CHARACTERS = 128;

export function cursorToWire({ incarnation, sequence }: Cursor): WireCursor {
  return { incarnation: wireText(incarnation), sequence };
}

/** A cursor that no agent can have made counts as none. */
export function cursorFromWire(cursor: WireCursor | null): Cursor {
  if (cursor === null || cursor.incarnation.length > MAX_INCARNATION_CHARACTERS) return NO_CURSOR;
  const sequence = Number(cursor.sequence);
  return Number.isSafeInteger(sequence) ? { incarnation: cursor.incarnation, sequence } : NO_CURSOR;
}
