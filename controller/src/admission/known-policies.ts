import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import { objectPath } from '@runtime-enforcer/kube/resource-path';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';

/** Which policies exist; of each only the name is kept. */
export interface KnownPolicies {
  start(): void;
  stop(): Promise<void>;
  readonly synced: Promise<void>;
  /**
   * Asks the API server for what is not known: a policy may be newer than what was heard.
   * @throws ApiError, ConnectionError
   */
  exists(namespace: string, name: string, signal: AbortSignal): Promise<boolean>;
}

/** See {@link KnownPolicies}. */
export function knownPolicies(options: {
  readonly client: ApiClient;
  readonly onTrouble: (error: unknown, waitMs: number) => void;
  readonly timings?: Partial<ReflectorTimings>;
}): KnownPolicies {
  const { client, onTrouble, timings = {} } = options;
  const store = objectStore<true>({ transform: () => true });
  const watch = reflector({
    client,
    resource: WORKLOAD_POLICIES,
    store,
    timings,
    onChange: () => undefined,
    onTrouble,
  });
  return {
    start: () => watch.start(),
    stop: async () => await watch.stop(),
    synced: watch.synced,
    async exists(namespace, name, signal) {
      if (store.get(`${namespace}/${name}`) === true) return true;
      try {
        await client.request({ path: objectPath({ resource: WORKLOAD_POLICIES, namespace, name }), signal });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        throw error;
      }
    },
  };
}
