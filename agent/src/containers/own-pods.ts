import type { BoundContainer } from './bound-container.ts';

/** The label that every pod of the product carries, with the value below. */
export const PRODUCT_LABEL = 'app.kubernetes.io/part-of';
export const PRODUCT = 'runtime-enforcer';

/** What the agent knows of its own pod; undefined outside Kubernetes, where no pod is the product's. */
export interface OwnPlace {
  readonly podUid: string | undefined;
  /** Namespace of the agent's pod, in which the product's other pods run, too. */
  readonly namespace: string | undefined;
}

/** Reads it from the environment that the pod's specification gives to the agent. */
export function ownPlaceFrom(environment: NodeJS.ProcessEnv): OwnPlace {
  return {
    podUid: nonEmpty(environment['POD_UID']),
    namespace: nonEmpty(environment['POD_NAMESPACE']),
  };
}

/**
 * Whether a pod is one of the product's own, which are never bound: one that is held to a policy, or waits for one,
 * could keep the product from starting.
 *
 * A tenant chooses labels, and neither uid nor namespace: kubelet tells the runtime what the API server gave. So the
 * label counts in the product's own namespace only, where nobody but its administrators may create pods.
 */
export function isOwnPod(
  pod: Pick<BoundContainer, 'podUid' | 'namespace' | 'labels'>,
  own: OwnPlace,
): boolean {
  if (own.podUid !== undefined && pod.podUid === own.podUid) return true;
  return (
    own.namespace !== undefined &&
    pod.namespace === own.namespace &&
    pod.labels.get(PRODUCT_LABEL) === PRODUCT
  );
}

/** An empty variable says nothing: a pod without a uid or a namespace must not be taken for the product's. */
function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
