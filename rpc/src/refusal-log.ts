/** What both ends of a connection write their log with. */
export interface RpcLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** One line per message in this time, with the number of those that were not written. */
const INTERVAL_MS = 10_000;
/** Different messages at a time. */
const MAX_MESSAGES = 16;

/** Logs refusals that strangers cause, so that no number of them fills the log. */
export interface RefusalLog {
  refused(fields: object, message: string): void;
  stop(): void;
}

export function createRefusalLog(log: RpcLog, intervalMs = INTERVAL_MS): RefusalLog {
  const silent = new Map<string, { count: number; timer: NodeJS.Timeout }>();

  const quieten = (message: string): void => {
    const timer = setTimeout(() => {
      const count = silent.get(message)?.count ?? 0;
      silent.delete(message);
      if (count > 0) log.warn({ times: count }, `${message} (repeated)`);
    }, intervalMs);
    timer.unref();
    silent.set(message, { count: 0, timer });
  };

  return {
    refused(fields, message) {
      const known = silent.get(message);
      if (known !== undefined) {
        known.count++;
        return;
      }
      if (silent.size >= MAX_MESSAGES) return;
      log.warn(fields, message);
      quieten(message);
    },
    stop() {
      for (const { timer } of silent.values()) clearTimeout(timer);
      silent.clear();
    },
  };
}
