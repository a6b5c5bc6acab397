import { type ClusterLearner, createClusterLearner } from '@runtime-enforcer/agent/learning/cluster-learner';
import { parseLearningSelector } from '@runtime-enforcer/agent/learning/learning-selector';
import type { WriterTimings } from '@runtime-enforcer/agent/learning/proposal-writer';
import { createCumulativeLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import type { BoundContainer } from '@runtime-enforcer/agent/containers/bound-container';
import type { RecordKey } from '@runtime-enforcer/agent/kernel/enforcer';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { syntheticContainer, syntheticExec, type SyntheticPod } from './synthetic-exec.ts';

/** Fast enough for a test to wait for. */
export const FAST: Partial<WriterTimings> = {
  ...{ gatherMs: 100, intervalMs: 300, writesPerSecond: 20, promotedMs: 300, brokenMs: 300 },
  backOff: { baseMs: 100, maxMs: 1_000, jitter: 1 },
};

/** A learner in this process, fed with synthetic execs. */
export interface LocalLearner {
  readonly learner: ClusterLearner;
  readonly counts: ReadonlyMap<string, number>;
  /** Lines of its log. */
  readonly lines: readonly string[];
  /** The containers of its node, in each of which `/bin/runs` runs. */
  readonly containers: BoundContainer[];
  readonly exec: (pod: SyntheticPod, path: string) => void;
  /** The same exec again, as the kernel counts it. */
  readonly repeat: (pod: SyntheticPod, path: string) => void;
}

/** Not started yet. */
export function localLearner(client: ApiClient, selector: string): LocalLearner {
  const counts = new Map<string, number>();
  const lines: string[] = [];
  const note = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const containers: BoundContainer[] = [];
  const learner = createClusterLearner({
    ...{ client, nodeName: 'here', isPromoted: () => false },
    selector: parseLearningSelector(selector) ?? [],
    observations: createCumulativeLog<NodeObservation>({ incarnation: 'here' }),
    containers: () => containers,
    readRunning: () =>
      Promise.resolve([{ pid: 1, path: Buffer.from('/bin/runs'), kind: 'file', otherMountNamespace: false }]),
    log: { debug: note, info: note, warn: note, error: note },
    counters: {
      add: (name, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
      value: (name) => counts.get(name) ?? 0,
    },
    timings: { writer: FAST },
  });
  let repeats = 1n;
  return {
    ...{ learner, counts, lines, containers },
    exec: (pod, path) => learner.events([syntheticExec(syntheticContainer(pod), path)]),
    repeat(pod, path) {
      const container = syntheticContainer(pod);
      const key = `${container.containerId} ${path}` as RecordKey;
      const nowMs = Date.now();
      learner.counts([
        {
          ...{ key, slot: 1, generation: 1, container, pathHash: 1n, mode: undefined, reason: undefined },
          ...{ count: ++repeats, firstMs: nowMs, lastMs: nowMs },
        },
      ]);
    },
  };
}

/** The paths of the container `main` in a proposal. */
export function allowedIn(proposal: KubeObject | undefined): readonly string[] {
  const spec = proposal?.['spec'] as
    { rulesByContainer?: Record<string, { executables: { allowed: string[] } }> } | undefined;
  return spec?.rulesByContainer?.['main']?.executables.allowed ?? [];
}
