import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import type { NodeState } from '@runtime-enforcer/rpc/reported';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { ClusterOptions } from '../commands/cluster-options.ts';
import type { RunOptions } from '../commands/run-options.ts';
import { createClusterLearner } from '../learning/cluster-learner.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { AgentStatus } from '../node/agent-status.ts';
import type { KernelSide } from '../node/kernel-side.ts';
import { createNodeAgent } from '../node/node-agent.ts';
import type { ObserverSources } from '../server/observer-server.ts';
import { AGENT_VERSION } from '../version.ts';
import { createCumulativeLog, type KeptLog } from '../violations/cumulative-log.ts';
import type { NodeViolation } from '../violations/node-violation.ts';
import { createViolationJournal } from '../violations/violation-journal.ts';
import { createViolationLog } from '../violations/violation-log.ts';
import { createNodeComparison } from './node-comparison.ts';
import type { HealthSubjects } from './node-health.ts';
import { createPodNotices } from './pod-notices.ts';
import { createPolicyWatch } from './policy-watch.ts';

/** How long the API server may take to tell its policies before the runtime is answered without them. */
const POLICIES_FIRST_MS = 5_000;

/** An agent that takes its policies from the API server. */
export interface ClusterAgent {
  /**
   * Follows the API server and answers the container runtime; resolves when its containers are bound, whether or not
   * the API server could be reached. Rejects with an error that says what to do.
   */
  start(): Promise<void>;
  /** Stops everything but the kernel side and the log of violations. */
  stop(): Promise<void>;
  status(): Promise<AgentStatus>;
  /** What was seen of learned containers. */
  readonly observations: KeptLog<NodeObservation>;
  /** For whoever asks by gRPC. */
  readonly sources: ObserverSources;
}

/**
 * Puts the parts together. `violations` goes on from the agent before; `onViolation` is told every violation and how
 * often it has occurred since it was told last.
 */
export function createClusterAgent(parts: {
  options: RunOptions;
  cluster: ClusterOptions;
  client: ApiClient;
  kernel: KernelSide;
  violations: KeptLog<NodeViolation>;
  onViolation: (violation: NodeViolation, occurrences: number) => void;
  health: HealthSubjects;
  log: Logger;
  metrics: AgentMetrics;
  timings?: Partial<ReflectorTimings>;
}): ClusterAgent {
  const { options, cluster, client, kernel, onViolation, health, log, metrics, timings = {} } = parts;
  const { enforcer, table, binder } = kernel;
  const { counters, failures } = metrics;
  const { nodeName } = options;
  const startedAt = new Date().toISOString();

  const notices = createPodNotices({
    ...{ client, nodeName, log },
    podUid: (containerId) => binder.container(containerId)?.podUid,
  });
  const violations = createViolationLog({
    log: parts.violations,
    onChange(violation, occurrences) {
      if (violation.occurrences === occurrences) notices.violation(violation);
      onViolation(violation, occurrences);
    },
  });
  const journal = createViolationJournal({
    ...{ nodeName, log, counters },
    write: (line) => violations.write(line),
    onEnded: (containerId) => violations.ended(containerId),
  });
  journal.recover(violations.recovered());

  const observations = createCumulativeLog<NodeObservation>({ incarnation: randomUUID() });
  const learner =
    cluster.learningSelector === undefined
      ? undefined
      : createClusterLearner({
          ...{ client, nodeName, selector: cluster.learningSelector, observations, log, counters },
          isPromoted: (namespace, proposal) => watch.isPromoted(namespace, proposal),
          containers: () => binder.containers(),
          readRunning: async (container) => (await binder.running(container)).programs,
          timings: { watches: timings },
        });

  const policiesKnown = Promise.withResolvers<undefined>();
  const node = createNodeAgent({
    ...{ options, kernel, journal, learner, notices, log, metrics },
    policy: (key) => watch.policy(key),
    policiesKnown: policiesKnown.promise,
    policyOnItsWay: (key) => watch.bringUpToDate(key),
  });
  const watch = createPolicyWatch({ client, table, effect: node.effect, log, failures, timings });
  const comparison = createNodeComparison({ node, watch, log, failures });

  let isStopped = false;

  const nodeState = (): NodeState => ({
    ...{ nodeName, startedAt, agentVersion: AGENT_VERSION, attached: node.attached },
    attachment: node.attached ? enforcer.attachment.kind : '',
    kernel: enforcer.attachment.kernel,
    degraded: enforcer.attachment.degraded ?? '',
    override: enforcer.override(),
    runtimeConnected: node.synchronized,
    policiesLoaded: watch.waitingFor() === undefined,
  });

  return {
    async start() {
      node.observe();
      Object.assign(health, { node, policies: watch });
      watch.start();
      // Before that, `isPromoted` would answer for none.
      void watch.loaded.then(() => {
        policiesKnown.resolve(undefined);
        return isStopped ? undefined : learner?.start();
      });
      const patience = new AbortController();
      await Promise.race([
        watch.loaded,
        watch.troubled,
        delay(POLICIES_FIRST_MS, undefined, { signal: patience.signal }).catch(() => undefined),
      ]);
      patience.abort();
      await node.start();
      comparison.start();
    },
    async stop() {
      isStopped = true;
      await comparison.stop();
      await watch.stop();
      await node.stop();
      await learner?.stop();
      await notices.stop();
    },
    status: () => node.status(),
    observations,
    sources: {
      node: nodeState,
      policies: () => table.states(),
      containers: () => binder.containers(),
      kernel: kernel.readings,
      violations: violations.log,
      observations,
    },
  };
}
