import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { isJsonObject } from '@runtime-enforcer/kube/kube-object';
import { type LabelSelector, matchesLabels } from '@runtime-enforcer/kube/label-selector';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import { NAMESPACES } from '@runtime-enforcer/kube/resource-path';

/** Whether a namespace is learned in. `unknown`: the API has not told yet that there is such a namespace. */
export type NamespaceState = 'selected' | 'other' | 'unknown';

/** Which namespaces are learned in, as their labels are now. */
export interface LearningNamespaces {
  start(): void;
  stop(): Promise<void>;
  state(namespace: string): NamespaceState;
  /** Resolved when all namespaces are known for the first time. */
  readonly synced: Promise<void>;
}

/** @param options.onChange told each namespace whose state is another one now */
export function createLearningNamespaces(options: {
  readonly client: ApiClient;
  readonly selector: LabelSelector;
  readonly onChange: (namespace: string, state: NamespaceState) => void;
  readonly onTrouble: (error: unknown, waitMs: number) => void;
  readonly timings?: Partial<ReflectorTimings>;
}): LearningNamespaces {
  const { client, selector, onChange, onTrouble, timings = {} } = options;
  /** Labels by name; null for one that is ending, in which nothing can be made any more. */
  const store = objectStore<Readonly<Record<string, string>> | null>({
    transform({ metadata: { labels, deletionTimestamp } }) {
      if (deletionTimestamp !== undefined) return null;
      return isJsonObject(labels) ? labels : {};
    },
  });
  const stateOf = (labels: Readonly<Record<string, string>> | null): NamespaceState =>
    labels !== null && matchesLabels(selector, labels) ? 'selected' : 'other';
  const watch = reflector({
    ...{ client, resource: NAMESPACES, store, onTrouble, timings },
    onChange(change) {
      if (change.type === 'deleted') {
        onChange(change.key, 'unknown');
        return;
      }
      const state = stateOf(change.value);
      if (change.type === 'added' || stateOf(change.previous) !== state) onChange(change.key, state);
    },
  });
  return {
    start: () => watch.start(),
    stop: async () => await watch.stop(),
    synced: watch.synced,
    state(namespace) {
      const labels = store.get(namespace);
      return labels === undefined ? 'unknown' : stateOf(labels);
    },
  };
}
