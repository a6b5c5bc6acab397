import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient, QueryValue } from './api-client.ts';
import { ApiError, isGone } from './api-error.ts';
import { backOffMs, type BackOffSettings } from './back-off.ts';
import { objectKey } from './kube-object.ts';
import type { ObjectStore, PreparedObject, StoreChange } from './object-store.ts';
import { pagedList } from './paged-list.ts';
import { newCounters, type ReflectorCounters } from './reflector-counters.ts';
import { collectionPath, type Resource } from './resource-path.ts';
import { SilentWatchError, watch } from './watch.ts';

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export interface ReflectorTimings {
  /** The server ends a watch after this long, or up to twice as long, by chance. */
  readonly watchSeconds: number;
  /** Servers send bookmarks about every minute. A watch quieter than this is opened again where it was. */
  readonly silenceMs: number;
  readonly backOff: BackOffSettings;
  /** What lived this long has not failed at once: the next failure counts as the first. */
  readonly stableMs: number;
  /** How old the last whole list may get before everything is compared again; 0 for never. */
  readonly resyncMs: number;
}

/** client-go's back-off and watch length. */
export const REFLECTOR_TIMINGS: ReflectorTimings = {
  watchSeconds: 300,
  silenceMs: 150_000,
  backOff: { baseMs: 800, maxMs: 30_000, jitter: 1 },
  stableMs: 10_000,
  resyncMs: 0,
};

export interface ReflectorOptions<Value, IndexName extends string> {
  readonly client: ApiClient;
  readonly resource: Resource;
  /** All namespaces when left out. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly store: ObjectStore<Value, IndexName>;
  /** Called after the store has changed. What it throws is counted and told, and changes nothing else. */
  readonly onChange: (change: StoreChange<Value>) => void;
  /** Told every failure with the wait that follows (0 for one that has no wait). Must not throw. */
  readonly onTrouble?: (error: unknown, waitMs: number) => void;
  readonly timings?: Partial<ReflectorTimings>;
  /** `list`: pages even where the server can send the initial list as a watch. */
  readonly initial?: 'watch' | 'list';
}

/** Keeps a store equal to what the API server holds, for ever. */
export interface Reflector {
  start(): void;
  /** Ends the requests that are under way; resolved when nothing runs any more. */
  stop(): Promise<void>;
  /** Resolved when the store has held everything for the first time. Never rejected. */
  readonly synced: Promise<void>;
  counters(): Readonly<ReflectorCounters>;
  /** Milliseconds since the server last said anything, bookmarks included; undefined before that. */
  quietMs(): number | undefined;
}

/** See {@link Reflector}. */
export function reflector<Value, IndexName extends string = never>(
  options: ReflectorOptions<Value, IndexName>,
): Reflector {
  const { client, store, onTrouble } = options;
  const timings: ReflectorTimings = { ...REFLECTOR_TIMINGS, ...options.timings };
  const path = collectionPath(options.resource, options.namespace);
  const selectors: Readonly<Record<string, QueryValue>> = {
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
  };
  const counters = newCounters();
  const stopping = new AbortController();
  const firstSync = Promise.withResolvers<undefined>();
  /** Up to where the store is known to be right; undefined when everything must be asked for. */
  let resourceVersion: string | undefined;
  let listsAsWatch = options.initial !== 'list';
  let listedAtMs = 0;
  let heardAtMs: number | undefined;
  let running: Promise<void> | undefined;

  function tell(changes: readonly StoreChange<Value>[]): void {
    for (const change of changes) {
      try {
        options.onChange(change);
      } catch (error) {
        counters.handlerErrors++;
        onTrouble?.(error, 0);
      }
    }
  }

  function takeAll(objects: Iterable<PreparedObject<Value>>, version: string): void {
    tell(store.replace(objects));
    resourceVersion = version;
    heardAtMs = listedAtMs = performance.now();
    counters.lists++;
    firstSync.resolve(undefined);
  }

  async function list(): Promise<void> {
    const request = { path, query: selectors, signal: stopping.signal };
    const listed = await pagedList(client, request, (object) => store.prepare(object));
    counters.malformed += listed.malformed;
    takeAll(listed.objects, listed.resourceVersion);
  }

  /** @param initial collects what is kept of the objects that the server sends first; undefined when the store has it */
  async function follow(initial: Map<string, PreparedObject<Value>> | undefined): Promise<void> {
    counters.watches++;
    const query = {
      ...selectors,
      allowWatchBookmarks: true,
      timeoutSeconds: Math.ceil(timings.watchSeconds * (1 + Math.random())),
      ...(initial === undefined
        ? { resourceVersion }
        : { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }),
    };
    let collecting = initial;
    const { signal } = stopping;
    for await (const { type, object } of watch(client, {
      path,
      query,
      signal,
      silenceMs: timings.silenceMs,
    })) {
      heardAtMs = performance.now();
      const version = object.metadata.resourceVersion;
      if (type === 'BOOKMARK') {
        counters.bookmarks++;
        if (collecting !== undefined && object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true') {
          takeAll(collecting.values(), version ?? '');
          collecting = undefined;
        }
      } else if (collecting !== undefined) {
        if (type === 'DELETED') collecting.delete(objectKey(object));
        else collecting.set(objectKey(object), store.prepare(object));
      } else {
        counters.events++;
        tell(type === 'DELETED' ? store.remove(object) : store.put(object));
      }
      if (collecting === undefined && version !== undefined) resourceVersion = version;
    }
  }

  async function cycle(): Promise<void> {
    if (timings.resyncMs > 0 && performance.now() - listedAtMs >= timings.resyncMs)
      resourceVersion = undefined;
    if (resourceVersion === undefined && listsAsWatch) {
      const initial = new Map<string, PreparedObject<Value>>();
      try {
        await follow(initial);
        return;
      } catch (error) {
        if (!isNotServed(error)) throw error;
        listsAsWatch = false;
      }
    }
    if (resourceVersion === undefined) await list();
    await follow(undefined);
  }

  async function run(): Promise<void> {
    let failures = 0;
    const { signal } = stopping;
    const isStopped = (): boolean => signal.aborted;
    while (!isStopped()) {
      const startMs = performance.now();
      let failure: unknown;
      try {
        await cycle();
      } catch (error) {
        failure = error;
      }
      if (isStopped()) return;
      const isStable = performance.now() - startMs >= timings.stableMs;
      if (isStable) failures = 0;
      if (failure instanceof SilentWatchError) counters.silences++;
      else if (isGone(failure)) counters.gone++;
      else if (failure !== undefined) counters.failures++;
      if (isGone(failure)) resourceVersion = undefined;
      // A watch that lived and ended as agreed is opened again at once; everything else waits.
      if (failure === undefined && isStable) continue;
      failures++;
      const asked = failure instanceof ApiError ? failure.retryAfterMs : undefined;
      const waitMs = backOffMs(timings.backOff, failures, Math.random(), asked);
      if (failure !== undefined) onTrouble?.(failure, waitMs);
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
    synced: firstSync.promise,
    counters: () => ({ ...counters }),
    quietMs: () => (heardAtMs === undefined ? undefined : performance.now() - heardAtMs),
  };
}

/** A server without the feature refuses its parameters as invalid. */
function isNotServed(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 400 || error.code === 422);
}
