import type { EventNote } from '@runtime-enforcer/kube/event-series';
import type { EventRecorder } from '@runtime-enforcer/kube/event-recorder';
import type { Logger } from '@runtime-enforcer/telemetry/logger';

/** A logger that tells nothing. */
export const SILENT_LOG: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** A recorder that only keeps what it is told. */
export function keptEvents(): { readonly notes: readonly EventNote[]; readonly recorder: EventRecorder } {
  const notes: EventNote[] = [];
  return {
    notes,
    recorder: {
      record: (note) => void notes.push(note),
      flush: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      counters: () => ({ written: notes.length, suppressed: 0, lost: 0 }),
    },
  };
}
