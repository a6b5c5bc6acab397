import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isJsonObject, type KubeObject } from '@runtime-enforcer/kube/kube-object';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import { PODS } from '@runtime-enforcer/kube/resource-path';
import { isFinished } from './agent-pod.ts';

/** Pods that are gone and whose place is remembered: what they did is told a while later. */
const MAX_ENDED = 20_000;

interface PodPlace {
  readonly nodeName: string;
  readonly policy: string;
  readonly isFinished: boolean;
}

/** Where pods run, as the API server says. */
export interface PodPlaces {
  start(): void;
  stop(): Promise<void>;
  readonly synced: Promise<void>;
  /**
   * Whether a pod runs, or ran, on a node. `unknown`: there is no such pod now, and none was seen.
   * @param key `namespace/name`
   * @param policy that the pod must name, `namespace/name`; any, where left out
   */
  isOn(key: string, nodeName: string, policy?: string): 'yes' | 'no' | 'unknown';
  /** The nodes on which pods run that name a policy, `namespace/name`. */
  nodesOf(policy: string): ReadonlySet<string>;
}

export interface PodPlacesOptions {
  readonly client: ApiClient;
  /** A pod of the policy came or went on the node. */
  readonly onChange: (policy: string, nodeName: string) => void;
  readonly onTrouble: (error: unknown, waitMs: number) => void;
  readonly timings?: Partial<ReflectorTimings>;
}

/** See {@link PodPlaces}. */
export function podPlaces({ client, onChange, onTrouble, timings = {} }: PodPlacesOptions): PodPlaces {
  const store = objectStore<PodPlace, 'policy'>({
    transform: placeOf,
    indexes: { policy: ({ policy, isFinished: ended }) => (policy === '' || ended ? [] : [policy]) },
  });
  const gone = new Map<string, PodPlace>();
  const watch = reflector({
    client,
    resource: PODS,
    fieldSelector: 'spec.nodeName!=',
    store,
    timings,
    onTrouble,
    onChange({ type, key, value }) {
      if (type === 'deleted') {
        gone.delete(key);
        gone.set(key, value);
        const [oldest] = gone.keys();
        if (gone.size > MAX_ENDED && oldest !== undefined) gone.delete(oldest);
      }
      if (value.policy !== '') onChange(value.policy, value.nodeName);
    },
  });
  return {
    start: () => watch.start(),
    stop: async () => await watch.stop(),
    synced: watch.synced,
    isOn(key, nodeName, policy) {
      const places = [store.get(key), gone.get(key)].filter((place) => place !== undefined);
      if (places.length === 0) return 'unknown';
      const isThere = (place: PodPlace): boolean =>
        place.nodeName === nodeName && (policy === undefined || place.policy === policy);
      return places.some(isThere) ? 'yes' : 'no';
    },
    nodesOf: (policy) => new Set(store.byIndex('policy', policy).map(({ nodeName }) => nodeName)),
  };
}

function placeOf({ metadata, spec, status }: KubeObject): PodPlace | undefined {
  const nodeName = isJsonObject(spec) ? spec['nodeName'] : undefined;
  if (typeof nodeName !== 'string' || nodeName === '') return undefined;
  const name = metadata.labels?.[POLICY_LABEL] ?? '';
  const policy = name === '' ? '' : `${metadata.namespace ?? ''}/${name}`;
  return { nodeName, policy, isFinished: isFinished(status) };
}
