import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ApiClient, QueryValue } from './api-client.ts';
import { isGone } from './api-error.ts';
import { isJsonObject, isKubeObject, type KubeObject } from './kube-object.ts';

const PAGE_OBJECTS = 500;

export interface ListedObjects<Kept = KubeObject> {
  /** What is kept of each. */
  readonly objects: readonly Kept[];
  /** From which a watch goes on. */
  readonly resourceVersion: string;
  /** Entries that are no objects with a name. */
  readonly malformed: number;
}

export interface ListRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, QueryValue>>;
  readonly signal?: AbortSignal;
}

/**
 * Lists all objects of a path, 500 at a time, as of one moment. When that moment gets too old between two pages, all
 * are asked for in one answer, so that a large list on a busy server still ends.
 *
 * @param keep what is kept of an object; the whole, where left out
 * @throws ApiError, ConnectionError; MalformedListError when the answer is no list
 */
export async function pagedList(client: ApiClient, request: ListRequest): Promise<ListedObjects>;
export async function pagedList<Kept>(
  client: ApiClient,
  request: ListRequest,
  keep: (object: KubeObject) => Kept,
): Promise<ListedObjects<Kept>>;
export async function pagedList(
  client: ApiClient,
  request: ListRequest,
  keep: (object: KubeObject) => unknown = (object) => object,
): Promise<ListedObjects<unknown>> {
  try {
    return await list(client, request, keep, PAGE_OBJECTS);
  } catch (error) {
    if (!isGone(error)) throw error;
    return await list(client, request, keep, undefined);
  }
}

/** The answer to a list is none. */
export class MalformedListError extends Error {
  constructor(path: string) {
    super(`list of ${path}: the answer is no list with a resource version`);
    this.name = 'MalformedListError';
  }
}

async function list(
  client: ApiClient,
  { path, query, signal }: ListRequest,
  keep: (object: KubeObject) => unknown,
  limit: number | undefined,
): Promise<ListedObjects<unknown>> {
  const objects: unknown[] = [];
  let malformed = 0;
  let continueToken: string | undefined;
  for (;;) {
    const page = await client.request({
      path,
      query: { ...query, limit, continue: continueToken },
      ...(signal && { signal }),
    });
    const { items, metadata } = isJsonObject(page) ? page : {};
    if (!isJsonObject(metadata) || typeof metadata['resourceVersion'] !== 'string') {
      throw new MalformedListError(path);
    }
    // A list of nothing may say so by null.
    for (const item of Array.isArray(items) ? (items as unknown[]) : []) {
      if (isKubeObject(item)) objects.push(keep(item));
      else malformed++;
    }
    const next = metadata['continue'];
    if (typeof next !== 'string' || next === '') {
      return { objects, resourceVersion: metadata['resourceVersion'], malformed };
    }
    continueToken = next;
    await nextTurn();
  }
}
