import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from './api-client.ts';
import { isConflict } from './api-error.ts';
import { backOffMs, type BackOffSettings } from './back-off.ts';
import { isKubeObject, type KubeObject } from './kube-object.ts';
import { describeReference, objectPath, type ObjectReference } from './resource-path.ts';

const ATTEMPTS = 8;
const BACK_OFF: BackOffSettings = { baseMs: 10, maxMs: 1_000, jitter: 1 };

/** Others changed the object in between, again and again. */
export class ContendedError extends Error {
  constructor(reference: ObjectReference, attempts: number, cause: unknown) {
    super(
      `${describeReference(reference)}: changed by others during each of ${attempts} attempts to update it`,
      {
        cause,
      },
    );
    this.name = 'ContendedError';
  }
}

export interface OptimisticUpdate {
  readonly client: ApiClient;
  /** With a subresource, that is what is written; the object itself is what is read. */
  readonly reference: ObjectReference;
  /**
   * What the object should be, from what it is; undefined when it is right already. Called again with the newer object
   * when another write came first, so it must not change anything else. Its metadata must keep the resource version.
   */
  readonly change: (current: KubeObject) => KubeObject | undefined;
  /** An object that is known already, to save the first read. */
  readonly known?: KubeObject;
  /** Under which name the API server notes in `managedFields` what was written. */
  readonly fieldManager?: string;
  readonly signal?: AbortSignal;
}

/**
 * Changes an object so that no write of anybody else is lost.
 *
 * @returns the object as it was written, or as it was found when nothing had to be
 * @throws ApiError (404 where there is no such object), ConnectionError, ContendedError, and what `change` throws
 */
export async function optimisticUpdate(update: OptimisticUpdate): Promise<KubeObject> {
  const { client, reference, change, fieldManager, signal } = update;
  const path = objectPath(reference);
  const { resource, namespace, name } = reference;
  const readPath = objectPath({ resource, name, ...(namespace !== undefined && { namespace }) });
  const options = signal === undefined ? {} : { signal };
  let known = update.known;
  for (let attempt = 1; ; attempt++) {
    const current = known ?? objectOf(await client.request({ path: readPath, ...options }), readPath);
    known = undefined;
    const wanted = change(current);
    if (wanted === undefined) return current;
    try {
      const query = { fieldManager };
      return objectOf(await client.request({ method: 'PUT', path, query, body: wanted, ...options }), path);
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === ATTEMPTS) throw new ContendedError(reference, ATTEMPTS, error);
    }
    await sleep(backOffMs(BACK_OFF, attempt, Math.random()), undefined, options);
  }
}

function objectOf(json: unknown, path: string): KubeObject {
  if (!isKubeObject(json)) throw new Error(`${path}: the API server's answer is no object with a name`);
  return json;
}
