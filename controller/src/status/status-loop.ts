import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { EventRecorder } from '@runtime-enforcer/kube/event-recorder';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import {
  createAgentClient,
  type AgentClient,
  type AgentClientOptions,
} from '@runtime-enforcer/rpc/agent-client';
import { policyEntryPool } from '@runtime-enforcer/rpc/policy-entry-pool';
import type { ExportedEvent } from '@runtime-enforcer/telemetry/log-export';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { LeaderTask } from '../leadership/leader-task.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { agentFleet } from './agent-fleet.ts';
import type { AgentPod } from './agent-pod.ts';
import { entryStores } from './entry-stores.ts';
import { type KnownPolicy, knownPolicy, statusOf } from './known-policy.ts';
import { knownUntil } from './known-until.ts';
import { ownWrites } from './own-writes.ts';
import { podPlaces } from './pod-places.ts';
import { acknowledgedEvent, tellPolicy } from './policy-events.ts';
import { policyStep, removeRequests } from './policy-step.ts';
import { type KnownProposal, knownProposal, proposalStep } from './proposal-step.ts';
import type { StatusGauges, StatusMetrics } from './status-metrics.ts';
import { statusRounds } from './status-rounds.ts';
import { GRACE_MS } from './violation-belief.ts';

const CONCURRENCY = 16;
/** How long a new leader waits at most until it has asked all agents. */
const MAX_SETTLE_MS = 30_000;
/** How long nodes have to hear of a new policy. */
const NEW_POLICY_MS = 10_000;
/** After so long of refusals by the API server, other policies' entries wait no longer for this one's. */
const GIVE_UP_MS = 300_000;
/** Answers that say no to this status, and would say it again. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 413, 422]);

export interface StatusLoopOptions {
  /** Writes only while this process leads. */
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Of the agents' pods: the controller's own. */
  readonly namespace: string;
  readonly agentSelector: string;
  readonly agentPort: number;
  /** In the certificate of every agent; absent: each has a name of its own. */
  readonly agentServerName?: string;
  readonly intervalMs: number;
  /** What to show to agents; absent: they are not asked, and every node is missing. */
  readonly certificates?: AgentClientOptions['certificates'];
  readonly metrics?: StatusMetrics;
  /** To a collector. Must not throw or wait. */
  readonly emit?: (event: ExportedEvent) => void;
  readonly timings?: Partial<ReflectorTimings>;
  /** For tests. */
  readonly connect?: (pod: AgentPod, address: string) => AgentClient;
}

export interface StatusLoop extends LeaderTask {
  gauges(): StatusGauges;
}

interface Failures {
  readonly sinceMs: number;
}

/**
 * Keeps the status of every policy, and of every proposal, equal to what the agents of all nodes say: reads them all at
 * once, writes what changed once per interval, and tells the agents what is stored only then.
 */
export function createStatusLoop(options: StatusLoopOptions): StatusLoop {
  const { client, events, log, namespace, agentSelector, agentPort, intervalMs, certificates } = options;
  const { agentServerName: serverName, metrics, emit, timings = {} } = options;
  let startedAtMs = 0;
  let isSynced = false;
  /** Before, statuses would tell of agents that have not been asked yet. */
  let hasSettled = false;
  const newUntilMs = new Map<string, number>();
  const refusedSince = new Map<string, Failures>();
  const timers = new Set<NodeJS.Timeout>();

  const policies = objectStore<KnownPolicy>({
    transform: knownPolicy,
    onRefused: ({ metadata: { namespace: place = '', name } }, err) =>
      log.error({ err, policy: `${place}/${name}` }, 'the policy cannot be read; its status stays as it is'),
  });
  const proposals = objectStore<KnownProposal>({ transform: knownProposal });
  const known = knownUntil();
  const onTrouble = (what: string) => (err: unknown, waitMs: number) => {
    known.trouble(waitMs);
    log.warn({ err, waitMs }, `${what} cannot be followed now`);
  };

  const policyRounds = statusRounds({
    intervalMs,
    concurrency: CONCURRENCY,
    isReady,
    look: lookAtPolicy,
    onRound(durationMs) {
      metrics?.round(durationMs);
      void fleet.acknowledge();
    },
  });
  const policyWrites = ownWrites((key) => policyRounds.add(key));
  const proposalRounds = statusRounds({
    intervalMs,
    concurrency: CONCURRENCY,
    isReady,
    look: lookAtProposal,
    onRound: () => undefined,
  });
  function* existing(keys: Iterable<string>): Generator<string> {
    for (const key of keys) if (policies.get(key) !== undefined) yield key;
  }

  const entries = entryStores({
    log,
    onViolation: (policy) => policyRounds.add(policy),
    onObservation: (proposal) => proposalRounds.add(proposal),
    onRefused: (refusal, count) => metrics?.refused(refusal, count),
  });
  const policyPool = policyEntryPool();
  const connect =
    options.connect ??
    (certificates &&
      ((pod: AgentPod, address: string) =>
        createAgentClient({
          ...{ address, port: agentPort, podName: pod.name, namespace, certificates, policyPool },
          ...(serverName !== undefined && { serverName }),
        })));
  const fleet = agentFleet({
    client,
    namespace,
    selector: agentSelector,
    ...(connect && { connect }),
    intake: entries.intake,
    onChange(changed) {
      policyRounds.addOnceQuiet(
        changed === 'all' ? [...policies.entries()].map(([key]) => key) : existing(changed),
      );
    },
    log,
    timings,
  });
  const pods = podPlaces({
    client,
    timings,
    onChange(policy, nodeName) {
      if (!fleet.nodes().byName.has(nodeName)) policyRounds.add(policy);
    },
    onTrouble: onTrouble('pods'),
  });
  const policyWatch = reflector({
    client,
    resource: WORKLOAD_POLICIES,
    store: policies,
    timings,
    onTrouble: onTrouble('policies'),
    onChange(change) {
      const { type, key, value } = change;
      if (type === 'updated') policyWrites.heard(key, value.object.metadata.resourceVersion);
      else policyRounds.add(key);
      if (type === 'deleted') {
        policyWrites.forget(key);
        newUntilMs.delete(key);
        refusedSince.delete(key);
        entries.refuseAll(entries.violations, key, 'UnknownObject');
      }
      if (type === 'added' && isSynced) {
        newUntilMs.set(key, performance.now() + NEW_POLICY_MS);
        lookLater(() => policyRounds.add(key), NEW_POLICY_MS);
      }
    },
  });
  const proposalWatch = reflector({
    client,
    resource: WORKLOAD_POLICY_PROPOSALS,
    store: proposals,
    timings,
    onTrouble: onTrouble('proposals'),
    onChange({ type, key }) {
      if (type === 'deleted') entries.refuseAll(entries.observations, key, 'UnknownObject');
    },
  });

  function lookLater(look: () => void, ms: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      look();
    }, ms);
    timers.add(timer);
  }

  function isReady(): boolean {
    if (!isSynced) return false;
    hasSettled ||= fleet.isSettled() || performance.now() - startedAtMs > MAX_SETTLE_MS;
    return hasSettled;
  }

  async function lookAtPolicy(key: string, signal: AbortSignal): Promise<void> {
    const policy = policies.get(key);
    if (policy === undefined) {
      entries.refuseAll(entries.violations, key, 'UnknownObject', known.ms() - GRACE_MS);
      if (entries.violations.of(key).length > 0) policyRounds.add(key);
      return;
    }
    const startMs = performance.now();
    const isNew = (newUntilMs.get(key) ?? 0) > startMs;
    if (!isNew) newUntilMs.delete(key);
    const told = (outcome: 'written' | 'unchanged' | 'failed'): void =>
      metrics?.write('policy', outcome, performance.now() - startMs);
    let written: string | undefined;
    policyWrites.begin(key);
    try {
      const result = await policyStep(
        { client, fleet, pods, knownUntilMs: known.ms() },
        key,
        policy,
        entries.violations.of(key),
        isNew,
        signal,
      );
      if (result === undefined) return;
      entries.settle(entries.violations, key, result.batches);
      refusedSince.delete(key);
      told(result.isWritten ? 'written' : 'unchanged');
      if (result.isWritten) {
        written = result.object.metadata.resourceVersion;
        metrics?.merged(result.occurrences);
        tellPolicy(events, result.object, result.before, result.outcome);
        for (const each of result.outcome.acknowledged) emit?.(acknowledgedEvent(result.object, each));
      }
      await removeRequests(client, policy, signal);
      // What is not believed yet.
      if (entries.violations.of(key).length > 0) policyRounds.add(key);
    } catch (err) {
      if (signal.aborted) return;
      told('failed');
      log.warn({ err, policy: key }, 'the status of the policy is written later');
      policyRounds.add(key);
      giveUp(key, err);
    } finally {
      policyWrites.end(key, written);
    }
  }

  /** What the API server refuses for long would keep agents from forgetting, and in the end from telling, anything. */
  function giveUp(key: string, error: unknown): void {
    if (!(error instanceof ApiError && REFUSALS.has(error.code))) return;
    const now = performance.now();
    const { sinceMs } = refusedSince.get(key) ?? { sinceMs: now };
    refusedSince.set(key, { sinceMs });
    if (now - sinceMs > GIVE_UP_MS) entries.refuseAll(entries.violations, key, 'NotStored');
  }

  async function lookAtProposal(key: string, signal: AbortSignal): Promise<void> {
    const proposal = proposals.get(key);
    const queues = entries.observations.of(key);
    if (queues.length === 0) return;
    if (proposal === undefined) {
      entries.refuseAll(entries.observations, key, 'UnknownObject', known.ms() - GRACE_MS);
      if (entries.observations.of(key).length > 0) proposalRounds.add(key);
      return;
    }
    const startMs = performance.now();
    try {
      const result = await proposalStep({ client, pods }, proposal, queues, signal);
      if (result === undefined) return;
      entries.settle(entries.observations, key, result.batches);
      metrics?.write('proposal', result.isWritten ? 'written' : 'unchanged', performance.now() - startMs);
    } catch (err) {
      if (signal.aborted) return;
      metrics?.write('proposal', 'failed', performance.now() - startMs);
      log.warn({ err, proposal: key }, 'the status of the proposal is written later');
      if (err instanceof ApiError && REFUSALS.has(err.code)) {
        entries.refuseAll(entries.observations, key, 'NotStored', startMs - GIVE_UP_MS);
      }
    }
    if (entries.observations.of(key).length > 0) proposalRounds.add(key);
  }

  const synced = Promise.all([policyWatch.synced, proposalWatch.synced, pods.synced, fleet.synced]);
  const reflectors = [policyWatch, proposalWatch, pods, fleet];

  return {
    name: 'status',
    start() {
      for (const each of reflectors) each.start();
      void synced.then(() => {
        isSynced = true;
        startedAtMs = performance.now();
      });
      policyRounds.start();
      proposalRounds.start();
    },
    async stop() {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all([policyRounds.stop(), proposalRounds.stop()]);
      await Promise.all(reflectors.map(async (each) => await each.stop()));
    },
    gauges: () => ({
      agents: fleet.counts(),
      activeViolations: [...policies.entries()].map(([key, { object }]) => [
        key,
        statusOf(object).violations.length,
      ]),
      unstored: entries.violations.size + entries.observations.size,
      oldestUnstoredMs: performance.now() - (oldest(entries) ?? performance.now()),
      waitingPolicies: policyRounds.waiting,
    }),
  };
}

function oldest({ violations, observations }: ReturnType<typeof entryStores>): number | undefined {
  const times = [violations.oldestMs(), observations.oldestMs()].filter((time) => time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}
