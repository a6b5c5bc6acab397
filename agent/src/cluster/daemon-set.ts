import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isNotFound } from '@runtime-enforcer/kube/api-error';
import { isJsonObject, isKubeObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type Reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import { objectPath, PODS, type Resource } from '@runtime-enforcer/kube/resource-path';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { OwnPod } from '../commands/cluster-options.ts';

const DAEMON_SETS: Resource = { group: 'apps', version: 'v1', plural: 'daemonsets' };
/** Pause between attempts to read our own pod. */
const RETRY_MS = 10_000;

/** Whether the DaemonSet that this agent belongs to is there. */
export interface OwnDaemonSet {
  start(): void;
  stop(): Promise<void>;
  /**
   * `deleted`: it is gone or going, and none of its name has taken its place, so nobody will come after this agent.
   * `present` also where the agent belongs to none. `unknown`: the API server did not answer in time.
   */
  state(deadline: AbortSignal): Promise<'present' | 'deleted' | 'unknown'>;
}

/**
 * Follows the DaemonSet from the start: an uninstallation takes the agent's rights away together with it, so asking
 * at the end may be too late.
 */
export function createOwnDaemonSet(parts: {
  client: ApiClient;
  ownPod: OwnPod;
  log: Logger;
  failures: (place: string) => void;
  timings?: Partial<ReflectorTimings>;
}): OwnDaemonSet {
  const { client, ownPod, log, failures, timings = {} } = parts;
  const { namespace } = ownPod;
  /** Whether it is being deleted. */
  const store = objectStore<{ readonly isDeleted: boolean }>({
    transform: ({ metadata }) => ({ isDeleted: metadata['deletionTimestamp'] !== undefined }),
  });
  /** Undefined until our own pod has been read; empty where no DaemonSet made it. */
  let name: string | undefined;
  let watch: Reflector | undefined;
  let isSynced = false;
  let timer: NodeJS.Timeout | undefined;
  let finding: Promise<void> = Promise.resolve();
  let isStopped = false;

  const find = async (): Promise<void> => {
    try {
      const pod = await client.request({ path: objectPath({ resource: PODS, ...ownPod }) });
      name = isKubeObject(pod) ? daemonSetOf(pod) : '';
    } catch (error) {
      failures('own_daemon_set');
      log.debug({ err: error }, 'the pod of this agent cannot be read; trying again');
      if (!isStopped) timer = setTimeout(look, RETRY_MS);
      return;
    }
    if (name === '' || isStopped) return;
    watch = reflector({
      ...{ client, resource: DAEMON_SETS, namespace, store, timings },
      fieldSelector: `metadata.name=${name}`,
      onChange: () => undefined,
      onTrouble: () => failures('own_daemon_set'),
    });
    void watch.synced.then(() => (isSynced = true));
    watch.start();
  };
  const look = (): void => {
    finding = find();
  };

  const ask = async (asked: string, signal: AbortSignal): Promise<'present' | 'deleted' | 'unknown'> => {
    try {
      const path = objectPath({ resource: DAEMON_SETS, namespace, name: asked });
      const found = await client.request({ path, signal });
      return isKubeObject(found) && found.metadata['deletionTimestamp'] === undefined ? 'present' : 'deleted';
    } catch (error) {
      return isNotFound(error) ? 'deleted' : 'unknown';
    }
  };

  return {
    start: look,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await Promise.all([finding, watch?.stop()]);
    },
    async state(deadline) {
      if (name === undefined) return 'unknown';
      if (name === '') return 'present';
      const answer = await ask(name, deadline);
      if (answer !== 'unknown' || !isSynced) return answer;
      // Our rights may have gone with it; what was heard before counts.
      return store.get(`${namespace}/${name}`)?.isDeleted === false ? 'unknown' : 'deleted';
    },
  };
}

/** The DaemonSet that the pod is one of; empty for none. */
function daemonSetOf({ metadata }: KubeObject): string {
  const owners = metadata['ownerReferences'];
  if (!Array.isArray(owners)) return '';
  const owner = owners.find((each: unknown) => isJsonObject(each) && each['controller'] === true) as unknown;
  if (!isJsonObject(owner) || owner['kind'] !== 'DaemonSet') return '';
  return typeof owner['name'] === 'string' ? owner['name'] : '';
}
