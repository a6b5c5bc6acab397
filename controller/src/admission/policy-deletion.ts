import { quote } from '@runtime-enforcer/api/field-error';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, isKubeObject } from '@runtime-enforcer/kube/kube-object';
import { collectionPath, NAMESPACES, objectPath, PODS } from '@runtime-enforcer/kube/resource-path';
import { type Admit, ALLOWED, refused } from './admission-review.ts';

/** Pods that a refusal names. */
const MAX_NAMES = 10;
const PAGE_PODS = 250;
/** Beyond these it is no news how many there are. */
const MAX_COUNTED = 1_000;
/** Pods that have ended start nothing any more. */
const NOT_FINISHED = 'status.phase!=Succeeded,status.phase!=Failed';

/**
 * Refuses to delete a policy that pods still name: their containers could not be restarted. A namespace that is being
 * deleted takes its policies along.
 */
export function policyDeletionAdmission(client: ApiClient): Admit {
  return async ({ operation, oldObject, name: requested, namespace }, signal) => {
    const name = oldObject?.metadata.name ?? requested;
    if (operation !== 'DELETE' || name === '') return ALLOWED;
    const { names, count, isMore } = await usingPods(client, namespace, name, signal);
    if (count === 0 || (await isEnding(client, namespace, signal))) return ALLOWED;
    const shown = names.slice(0, MAX_NAMES).join(', ');
    const rest = count - Math.min(count, MAX_NAMES);
    const more = rest > 0 ? ` (and ${isMore ? 'at least ' : ''}${rest} more)` : '';
    return refused(
      403,
      `cannot delete WorkloadPolicy ${quote(name)} while ${isMore ? 'more than ' : ''}${count} pod(s) in namespace ` +
        `${quote(namespace)} still use it: ${shown}${more}`,
    );
  };
}

interface UsingPods {
  readonly names: readonly string[];
  readonly count: number;
  readonly isMore: boolean;
}

async function usingPods(
  client: ApiClient,
  namespace: string,
  policy: string,
  signal: AbortSignal,
): Promise<UsingPods> {
  const names: string[] = [];
  let continueToken: string | undefined;
  do {
    const page = await client.request({
      path: collectionPath(PODS, namespace),
      query: {
        labelSelector: `${POLICY_LABEL}=${policy}`,
        fieldSelector: NOT_FINISHED,
        limit: PAGE_PODS,
        continue: continueToken,
      },
      signal,
    });
    const { items, metadata } = isJsonObject(page) ? page : {};
    for (const pod of Array.isArray(items) ? (items as unknown[]) : []) {
      if (isKubeObject(pod)) names.push(pod.metadata.name);
    }
    const next = isJsonObject(metadata) ? metadata['continue'] : undefined;
    continueToken = typeof next === 'string' && next !== '' ? next : undefined;
  } while (continueToken !== undefined && names.length < MAX_COUNTED);
  return { names, count: names.length, isMore: continueToken !== undefined };
}

async function isEnding(client: ApiClient, namespace: string, signal: AbortSignal): Promise<boolean> {
  try {
    const found = await client.request({
      path: objectPath({ resource: NAMESPACES, name: namespace }),
      signal,
    });
    return isKubeObject(found) && found.metadata['deletionTimestamp'] !== undefined;
  } catch (error) {
    if (isNotFound(error)) return true;
    throw error;
  }
}
