import { PROMOTE_LABEL } from '@runtime-enforcer/api/keys';
import { WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { POLICY_MODES } from '@runtime-enforcer/api/workload-policy';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';

/** Whether a proposal's label asks for its promotion: then nothing is learned into it. */
export function isMarkedForPromotion(label: string | undefined): boolean {
  return POLICY_MODES.some((mode) => mode === label);
}

/** The proposals that are marked for promotion; the others, which change far more often, are not followed. */
export interface PromotionWatch {
  start(): void;
  stop(): Promise<void>;
  /** Whether the proposal `namespace/name` is marked now. */
  isMarked(key: string): boolean;
  /** Resolved when all that are marked are known for the first time. */
  readonly synced: Promise<void>;
}

/** @param options.onChange told each proposal, by `namespace/name`, of which that may have changed */
export function createPromotionWatch(options: {
  readonly client: ApiClient;
  readonly onChange: (key: string) => void;
  readonly onTrouble: (error: unknown, waitMs: number) => void;
  readonly timings?: Partial<ReflectorTimings>;
}): PromotionWatch {
  const { client, onChange, onTrouble, timings = {} } = options;
  const store = objectStore<boolean>({
    transform: ({ metadata: { labels } }) => isMarkedForPromotion(labels?.[PROMOTE_LABEL]),
  });
  const watch = reflector({
    ...{
      client,
      resource: WORKLOAD_POLICY_PROPOSALS,
      labelSelector: PROMOTE_LABEL,
      store,
      onTrouble,
      timings,
    },
    onChange: ({ key }) => onChange(key),
  });
  return {
    start: () => watch.start(),
    stop: async () => await watch.stop(),
    synced: watch.synced,
    isMarked: (key) => store.get(key) === true,
  };
}
