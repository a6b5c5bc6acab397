/** How many may come at once, and how long it takes until one more may. */
export interface Budget {
  readonly burst: number;
  readonly refillMs: number;
}

/** Pods that are remembered; the one that was silent the longest is forgotten first. */
const MAX_PODS = 1_024;

/** Whether one more Event of a kind that tenants cause may be written: few per pod, and few per node. */
export type EventBudget = (pod: string, nowMs: number) => boolean;

interface Bucket {
  readonly budget: Budget;
  tokens: number;
  filledMs: number;
}

/** @returns a budget that takes nothing from the node where the pod has none left */
export function createEventBudget({
  ofNode,
  ofPod,
}: {
  readonly ofNode: Budget;
  readonly ofPod: Budget;
}): EventBudget {
  const node = fullBucket(ofNode, 0);
  const pods = new Map<string, Bucket>();
  return (pod, nowMs) => {
    const own = pods.get(pod) ?? fullBucket(ofPod, nowMs);
    pods.delete(pod);
    pods.set(pod, own);
    const [oldest] = pods.keys();
    if (pods.size > MAX_PODS && oldest !== undefined) pods.delete(oldest);
    fill(own, nowMs);
    fill(node, nowMs);
    if (own.tokens < 1 || node.tokens < 1) return false;
    own.tokens--;
    node.tokens--;
    return true;
  };
}

function fullBucket(budget: Budget, nowMs: number): Bucket {
  return { budget, tokens: budget.burst, filledMs: nowMs };
}

function fill(bucket: Bucket, nowMs: number): void {
  const { burst, refillMs } = bucket.budget;
  bucket.tokens = Math.min(burst, bucket.tokens + (nowMs - bucket.filledMs) / refillMs);
  bucket.filledMs = nowMs;
}
