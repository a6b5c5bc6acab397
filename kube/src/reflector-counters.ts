/** What a reflector has seen since it was made. */
export interface ReflectorCounters {
  /** Whole lists taken, in pages or as a watch. */
  lists: number;
  watches: number;
  events: number;
  bookmarks: number;
  /** Times the server no longer knew our version, so that everything was asked for again. */
  gone: number;
  /** Watches given up because nothing came. */
  silences: number;
  /** Refused requests, broken connections, malformed events. */
  failures: number;
  /** Entries of lists that were no objects. */
  malformed: number;
  /** Times that `onChange` threw. */
  handlerErrors: number;
}

export function newCounters(): ReflectorCounters {
  return {
    lists: 0,
    watches: 0,
    events: 0,
    bookmarks: 0,
    gone: 0,
    silences: 0,
    failures: 0,
    malformed: 0,
    handlerErrors: 0,
  };
}
