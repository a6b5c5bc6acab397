import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ApiClient, QueryValue } from './api-client.ts';
import { ApiError } from './api-error.ts';
import { isJsonObject, isKubeObject, type KubeObject } from './kube-object.ts';

/** etcd holds objects of 1.5 MiB; a line beyond this is no event. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** How long events may be read before other work gets its turn. */
const TURN_MS = 4;
const NEWLINE = 0x0a;

/** One change that the API server tells, in its order. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  /** Of a bookmark only the resource version and annotations are set. */
  readonly object: KubeObject;
}

/** Nothing came for so long that the other end must be thought gone. */
export class SilentWatchError extends Error {
  constructor(path: string, silenceMs: number) {
    super(`watch of ${path}: nothing came for ${silenceMs} ms`);
    this.name = 'SilentWatchError';
  }
}

/** A line of a watch that is no event. */
export class MalformedEventError extends Error {
  constructor(path: string, reason: string) {
    super(`watch of ${path}: ${reason}`);
    this.name = 'MalformedEventError';
  }
}

export interface WatchRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, QueryValue>>;
  /** Ends the watch without an error. */
  readonly signal: AbortSignal;
  /** Longest time without any event, bookmarks included, and before the first. */
  readonly silenceMs: number;
}

/**
 * Yields the events of one watch until the server ends it, and lets other work of the process run in between.
 *
 * @throws ApiError for an ERROR event or a refused request; SilentWatchError; MalformedEventError; ConnectionError
 *   or the stream's own error when the connection breaks
 */
export async function* watch(client: ApiClient, request: WatchRequest): AsyncGenerator<WatchEvent> {
  const { path, query, silenceMs } = request;
  const controller = new AbortController();
  const silence = setTimeout(() => controller.abort(new SilentWatchError(path, silenceMs)), silenceMs);
  const signal = AbortSignal.any([controller.signal, request.signal]);
  try {
    const body = await client.stream({
      path,
      query: { ...query, watch: true },
      signal,
      timeoutMs: silenceMs,
    });
    let turnEnd = performance.now() + TURN_MS;
    for await (const line of linesOf(body, path)) {
      silence.refresh();
      yield eventOf(line, path);
      if (performance.now() < turnEnd) continue;
      await nextTurn();
      turnEnd = performance.now() + TURN_MS;
    }
  } catch (error) {
    if (request.signal.aborted) return;
    // The stream may tell of the broken connection rather than of why we broke it.
    if (controller.signal.reason instanceof SilentWatchError) throw controller.signal.reason;
    throw error;
  } finally {
    clearTimeout(silence);
    controller.abort();
  }
}

/** The lines of a stream of bytes, without their ends; what follows the last line end is no line. */
export async function* linesOf(body: AsyncIterable<Buffer>, path: string): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      yield Buffer.concat(parts).toString();
      parts = [];
      bytes = 0;
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    bytes += rest.length;
    if (bytes > MAX_LINE_BYTES)
      throw new MalformedEventError(path, `an event exceeds ${MAX_LINE_BYTES} bytes`);
    if (rest.length > 0) parts.push(rest);
  }
}

function eventOf(line: string, path: string): WatchEvent {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    throw new MalformedEventError(path, 'a line is not JSON');
  }
  const { type, object } = isJsonObject(json) ? json : {};
  switch (type) {
    case 'ERROR': {
      const code = isJsonObject(object) && typeof object['code'] === 'number' ? object['code'] : 500;
      throw new ApiError(`watch of ${path}`, code, object);
    }
    case 'BOOKMARK':
      if (isJsonObject(object) && isJsonObject(object['metadata'])) {
        return { type, object: object as unknown as KubeObject };
      }
      break;
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      if (isKubeObject(object)) return { type, object };
      break;
    default:
  }
  throw new MalformedEventError(path, 'a line is not an event with an object');
}
