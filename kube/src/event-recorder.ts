import { randomBytes } from 'node:crypto';
import type { ApiClient } from './api-client.ts';
import { isNotFound } from './api-error.ts';
import { type EventDecision, type EventNote, eventSeries } from './event-series.ts';
import { collectionPath, EVENTS, objectPath } from './resource-path.ts';

/** Notes that wait to be written. More are dropped: an API server that is away must cost no memory. */
const MAX_WAITING = 1_000;
/** Written Events that can still be counted up. */
const MAX_OPEN = 4_096;
const MAX_NAME_CHARACTERS = 253;
const WRITE_TIMEOUT_MS = 10_000;
/** Events about objects without a namespace are kept there. */
const CLUSTER_NAMESPACE = 'default';

export interface EventRecorderOptions {
  readonly client: ApiClient;
  /** Who says so: `runtime-enforcer-agent`. */
  readonly component: string;
  /** The node or pod on which the component runs. */
  readonly host: string;
  /** Told each note that was lost. Must not throw. */
  readonly onLost?: (note: EventNote, error: unknown) => void;
}

export interface EventRecorder {
  /** Never throws and never waits. */
  record(note: EventNote): void;
  /** Resolved when all that was recorded so far has been written or lost. */
  flush(): Promise<void>;
  /** Nothing is written afterwards; what waits is lost. */
  stop(): Promise<void>;
  counters(): Readonly<EventCounters>;
}

export interface EventCounters {
  written: number;
  /** Left out, because one object had too many. */
  suppressed: number;
  lost: number;
}

interface OpenEvent {
  readonly namespace: string;
  readonly name: string;
}

/** Writes notes as Events of the core API, alike ones as one Event with a count. One after the other, in order. */
export function eventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, component, host, onLost } = options;
  const series = eventSeries();
  const open = new Map<string, OpenEvent>();
  const counters: EventCounters = { written: 0, suppressed: 0, lost: 0 };
  const stopping = new AbortController();
  let waiting = 0;
  let tail: Promise<void> = Promise.resolve();

  function lose(note: EventNote, error: unknown): void {
    counters.lost++;
    onLost?.(note, error);
  }

  async function write(
    note: EventNote,
    decision: Exclude<EventDecision, { action: 'drop' }>,
    at: Date,
  ): Promise<void> {
    const known = open.get(decision.series);
    if (decision.action === 'count' && known !== undefined) {
      try {
        await patch(known, { count: decision.count, lastTimestamp: at, message: decision.message });
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    // The first, or one whose Event has ended meanwhile.
    open.delete(decision.series);
    open.set(decision.series, await create(note, decision.message, at));
    const [oldest] = open.keys();
    if (open.size > MAX_OPEN && oldest !== undefined) open.delete(oldest);
  }

  async function create({ subject, type, reason }: EventNote, message: string, at: Date): Promise<OpenEvent> {
    const namespace = subject.namespace ?? CLUSTER_NAMESPACE;
    const name = eventName(subject.name);
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: subject,
      type,
      reason,
      message,
      source: { component, host },
      reportingComponent: component,
      reportingInstance: host,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
    await client.request({
      method: 'POST',
      path: collectionPath(EVENTS, namespace),
      body,
      ...requestOptions(),
    });
    return { namespace, name };
  }

  async function patch({ namespace, name }: OpenEvent, body: unknown): Promise<void> {
    const path = objectPath({ resource: EVENTS, namespace, name });
    const patchType = 'application/merge-patch+json';
    await client.request({ method: 'PATCH', path, patchType, body, ...requestOptions() });
  }

  const requestOptions = () => ({ signal: stopping.signal, timeoutMs: WRITE_TIMEOUT_MS });

  return {
    record(note) {
      if (stopping.signal.aborted) return;
      if (waiting >= MAX_WAITING) {
        lose(note, new Error(`more than ${MAX_WAITING} events wait to be written`));
        return;
      }
      const decision = series.decide(note, performance.now());
      if (decision.action === 'drop') {
        counters.suppressed++;
        return;
      }
      const at = new Date();
      waiting++;
      tail = tail.then(async () => {
        try {
          await write(note, decision, at);
          counters.written++;
        } catch (error) {
          if (decision.action === 'create') series.forget(decision.series);
          lose(note, error);
        }
        waiting--;
      });
    },
    flush: async () => await tail,
    async stop() {
      stopping.abort();
      await tail;
    },
    counters: () => ({ ...counters }),
  };
}

function eventName(subject: string): string {
  const suffix = `.${randomBytes(8).toString('hex')}`;
  // What is cut off must not leave a dot or dash before the suffix.
  return subject.slice(0, MAX_NAME_CHARACTERS - suffix.length).replace(/[^a-z0-9]+$/, '') + suffix;
}
