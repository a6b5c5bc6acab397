import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';

/** `done`, or what the API server said against it: the code and its words. */
export type Outcome = 'done' | { readonly code: number; readonly said: string };

/** Tries a request, and tells what came of it. Errors that are no answer of the API server are thrown. */
export async function attempt(
  client: ApiClient,
  request: Parameters<ApiClient['request']>[0],
): Promise<Outcome> {
  try {
    await client.request(request);
    return 'done';
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code, said: error.said };
    throw error;
  }
}

/** Who has no right is told so by RBAC, and not by a webhook or a missing object. */
export function isForbiddenByRbac(outcome: Outcome): boolean {
  return outcome !== 'done' && outcome.code === 403 && /is forbidden: User \S+ cannot /.test(outcome.said);
}
