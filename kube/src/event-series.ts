/** The object that an Event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** Something that happened to an object, for people who look at it. */
export interface EventNote {
  readonly subject: EventSubject;
  readonly type: 'Normal' | 'Warning';
  /** In CamelCase, a word for machines: `ExecDenied`. */
  readonly reason: string;
  readonly message: string;
}

/** What to do with a note: begin an Event, count one up, or drop the note. */
export type EventDecision =
  | { readonly action: 'create'; readonly series: string; readonly message: string }
  | { readonly action: 'count'; readonly series: string; readonly message: string; readonly count: number }
  | { readonly action: 'drop' };

/** Like client-go's correlator: what is alike counts one Event up, and nobody floods the API server. */
const SIMILAR_WINDOW_MS = 600_000;
const MAX_DIFFERENT_MESSAGES = 10;
const BURST = 25;
const REFILL_MS = 300_000;
/** What is remembered of other objects and messages is forgotten in the order of last use. */
const MAX_REMEMBERED = 4_096;
const MAX_MESSAGE_CHARACTERS = 1_024;
const COMBINED_PREFIX = '(combined from similar events): ';

/** Decides over one note after the other. */
export interface EventSeries {
  decide(note: EventNote, nowMs: number): EventDecision;
  /** The Event of a series could not be counted up (it has ended): the next alike begins another. */
  forget(series: string): void;
}

interface Kind {
  readonly messages: Set<string>;
  lastMs: number;
}

interface Bucket {
  tokens: number;
  filledMs: number;
}

/** @returns a memory of its own */
export function eventSeries(): EventSeries {
  const counts = new Map<string, { count: number; lastMs: number }>();
  const kinds = new Map<string, Kind>();
  const buckets = new Map<string, Bucket>();

  function takeToken(subject: string, nowMs: number): boolean {
    const bucket = recall(buckets, subject, () => ({ tokens: BURST, filledMs: nowMs }));
    const refilled = (nowMs - bucket.filledMs) / REFILL_MS;
    bucket.tokens = Math.min(BURST, bucket.tokens + Math.max(0, refilled));
    bucket.filledMs = nowMs;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }

  /** Too many different messages of one kind become one. */
  function combine(kindKey: string, message: string, nowMs: number): { key: string; message: string } {
    const kind = recall<Kind>(kinds, kindKey, () => ({ messages: new Set(), lastMs: nowMs }));
    if (nowMs - kind.lastMs > SIMILAR_WINDOW_MS) kind.messages.clear();
    kind.lastMs = nowMs;
    if (!kind.messages.has(message) && kind.messages.size >= MAX_DIFFERENT_MESSAGES) {
      return { key: kindKey, message: shorten(`${COMBINED_PREFIX}${message}`) };
    }
    kind.messages.add(message);
    return { key: `${kindKey}\n${message}`, message };
  }

  return {
    decide({ subject, type, reason, message }, nowMs) {
      const { apiVersion, kind, namespace = '', name, uid = '' } = subject;
      const subjectKey = JSON.stringify([apiVersion, kind, namespace, name, uid]);
      if (!takeToken(subjectKey, nowMs)) return { action: 'drop' };
      const combined = combine(JSON.stringify([subjectKey, type, reason]), shorten(message), nowMs);
      const series = combined.key;
      const known = recall(counts, series, () => ({ count: 0, lastMs: nowMs }));
      if (nowMs - known.lastMs > SIMILAR_WINDOW_MS) known.count = 0;
      known.count++;
      known.lastMs = nowMs;
      return known.count === 1
        ? { action: 'create', series, message: combined.message }
        : { action: 'count', series, message: combined.message, count: known.count };
    },
    forget: (series) => void counts.delete(series),
  };
}

function recall<Value>(memory: Map<string, Value>, key: string, make: () => Value): Value {
  const value = memory.get(key) ?? make();
  memory.delete(key);
  memory.set(key, value);
  const [oldest] = memory.keys();
  if (memory.size > MAX_REMEMBERED && oldest !== undefined) memory.delete(oldest);
  return value;
}

function shorten(message: string): string {
  return message.length > MAX_MESSAGE_CHARACTERS
    ? `${message.slice(0, MAX_MESSAGE_CHARACTERS - 1)}…`
    : message;
}
