import type { BackOffSettings } from '@runtime-enforcer/kube/back-off';
import { workQueue } from '@runtime-enforcer/kube/work-queue';
import type { PodIdentity, PodReference, WorkloadIdentities } from './workload-identity.ts';

const MAX_CONCURRENT = 4;
const BACK_OFF: BackOffSettings = { baseMs: 500, maxMs: 30_000, jitter: 1 };
/** Pods of a node are some hundreds; those that ended are forgotten. */
const MAX_PODS = 4_096;

/** The identities of this node's pods, found out once each and in the background. */
export interface PodIdentities {
  start(): void;
  /** Ends what is under way. */
  stop(): Promise<void>;
  /** Undefined: not known yet; `onIdentified` tells. Also where there are too many pods to know. */
  identity(pod: PodReference): PodIdentity | undefined;
  /** Forgets the others. Keys as {@link podKey} has them. */
  retain(inUse: ReadonlySet<string>): void;
}

export function podKey({ namespace, podName, podUid }: PodReference): string {
  return JSON.stringify([namespace, podName, podUid]);
}

export function createPodIdentities(options: {
  readonly identities: WorkloadIdentities;
  readonly onIdentified: (podKey: string) => void;
  /** Told each failure of the API; the pod is asked for again. */
  readonly onFailure: (error: unknown) => void;
  readonly backOff?: BackOffSettings;
}): PodIdentities {
  const { identities, onIdentified, onFailure, backOff = BACK_OFF } = options;
  const pods = new Map<string, { readonly pod: PodReference; identity: PodIdentity | undefined }>();
  const queue = workQueue({
    concurrency: MAX_CONCURRENT,
    backOff,
    maxFailures: Number.POSITIVE_INFINITY,
    async process(key, signal) {
      const known = pods.get(key);
      if (known === undefined || known.identity !== undefined) return undefined;
      known.identity = await identities.identify(known.pod, signal);
      onIdentified(key);
      return undefined;
    },
    onFailure: (_key, error) => onFailure(error),
  });

  return {
    start: () => queue.start(),
    stop: async () => await queue.stop(),
    identity(pod) {
      const key = podKey(pod);
      const known = pods.get(key);
      if (known !== undefined) return known.identity;
      if (pods.size >= MAX_PODS) return undefined;
      const { namespace, podName, podUid } = pod;
      pods.set(key, { pod: { namespace, podName, podUid }, identity: undefined });
      queue.add(key);
      return undefined;
    },
    retain(inUse) {
      for (const key of pods.keys()) if (!inUse.has(key)) pods.delete(key);
    },
  };
}
