import { setTimeout as delay } from 'node:timers/promises';
import { objectPath } from '@runtime-enforcer/kube/resource-path';
import { WORKLOAD_POLICIES } from '@runtime-enforcer/api/resources';
import type { BenchCluster } from './bench-cluster.ts';
import type { LogLine } from './host-process.ts';
import { WORKLOAD_CONTAINER, WORKLOAD_NAMESPACE, workloadLists } from './workload.ts';

const EDITS = 300;
/** No divisor in common with the numbers of policies, so that neighbours are not edited one after the other. */
const STRIDE = 61;
const PAUSE_MS = 30;
const ENFORCED_TIMEOUT_MS = 30_000;

/** Follows which versions of policies an agent says to have loaded. */
export interface LoadedVersions {
  readonly onLine: (line: LogLine) => void;
  /** When it said so, as `performance.now()` tells time. Rejects after half a minute. */
  at(policy: string, generation: number): Promise<number>;
}

export function followLoadedVersions(): LoadedVersions {
  const told = new Map<string, PromiseWithResolvers<number>>();
  const version = (policy: string, generation: number): PromiseWithResolvers<number> => {
    const key = `${policy} ${generation}`;
    const known = told.get(key) ?? Promise.withResolvers<number>();
    told.set(key, known);
    return known;
  };
  return {
    onLine({ msg, policy, generation }) {
      if (msg !== 'policy loaded' || policy === undefined || generation === undefined) return;
      version(policy, generation).resolve(performance.now());
    },
    async at(policy, generation) {
      const late = delay(ENFORCED_TIMEOUT_MS, undefined, { ref: false }).then(() => {
        throw new Error(`the agent has not loaded generation ${generation} of ${policy}`);
      });
      return await Promise.race([version(policy, generation).promise, late]);
    },
  };
}

/**
 * Puts another path into lists, one policy after the other. Resolves with the milliseconds from the answer of the API
 * server to each edit until the agent says that it has read it back from the kernel.
 */
export async function measureEdits(
  { plane }: BenchCluster,
  loaded: LoadedVersions,
  policies: number,
): Promise<number[]> {
  const lists = [...workloadLists(policies)];
  const times: number[] = [];
  for (let edit = 0; edit < EDITS; edit++) {
    const number = (edit * STRIDE) % policies;
    const name = `policy-${number}`;
    const allowed = [`/opt/edited/tool${edit}`, ...(lists[number] ?? []).slice(1)];
    const answer = await plane.admin.client.request({
      method: 'PATCH',
      path: objectPath({ resource: WORKLOAD_POLICIES, namespace: WORKLOAD_NAMESPACE, name }),
      patchType: 'application/merge-patch+json',
      body: { spec: { rulesByContainer: { [WORKLOAD_CONTAINER]: { executables: { allowed } } } } },
    });
    const acceptedMs = performance.now();
    const { generation } = (answer as { readonly metadata: { readonly generation: number } }).metadata;
    const enforcedMs = await loaded.at(`${WORKLOAD_NAMESPACE}/${name}`, generation);
    // The watch may be faster than the answer.
    times.push(Math.max(0, enforcedMs - acceptedMs));
    await delay(PAUSE_MS);
  }
  return times;
}
