import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import { API_VERSION, WORKLOAD_POLICY_KIND, WORKLOAD_POLICY_PROPOSAL_KIND } from '@runtime-enforcer/api/keys';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { BackOffSettings } from '@runtime-enforcer/kube/back-off';
import type { EventRecorder } from '@runtime-enforcer/kube/event-recorder';
import { objectStore } from '@runtime-enforcer/kube/object-store';
import { reflector, type ReflectorTimings } from '@runtime-enforcer/kube/reflector';
import { workQueue } from '@runtime-enforcer/kube/work-queue';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { LeaderTask } from '../leadership/leader-task.ts';
import { WORKLOAD_POLICIES, WORKLOAD_POLICY_PROPOSALS } from '@runtime-enforcer/api/resources';
import { type PromotionOutcome, type PromotionResult, promotionStep } from './promotion-step.ts';
import {
  concernedProposals,
  type PolicySummary,
  type ProposalSummary,
  summarizePolicy,
  summarizeProposal,
} from './proposal-summary.ts';

const CONCURRENCY = 4;
/** An API server that is away comes back: nothing is given up. */
const MAX_FAILURES = Number.POSITIVE_INFINITY;
const BACK_OFF: BackOffSettings = { baseMs: 20, maxMs: 60_000, jitter: 0.5 };

export interface PromotionOptions {
  /** Writes only while this process leads. */
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly observe?: (outcome: PromotionOutcome | 'error', durationMs: number) => void;
  readonly timings?: Partial<ReflectorTimings>;
  readonly backOff?: BackOffSettings;
}

export interface Promotion extends LeaderTask {
  /** Resolved when all proposals and policies are known. */
  readonly synced: Promise<void>;
  depth(): number;
}

interface Refusal extends Pick<ProposalSummary, 'uid' | 'generation' | 'promote'> {
  readonly untilMs: number;
}

/** Turns proposals into policies as their labels ask, and removes proposals whose policy exists. */
export function createPromotion(options: PromotionOptions): Promotion {
  const { client, events, log, observe, timings = {}, backOff = BACK_OFF } = options;
  const proposals = objectStore<ProposalSummary>({ transform: summarizeProposal });
  const policies = objectStore<PolicySummary, 'madeFrom'>({
    transform: summarizePolicy,
    indexes: {
      madeFrom: ({ namespace, promotedFrom }) =>
        promotedFrom === undefined ? [] : [`${namespace}/${promotedFrom}`],
    },
  });
  /** A refusal may read differently each time, and telling it changes the proposal: only time, or the user, ends it. */
  const refusals = new Map<string, Refusal>();
  const context = {
    client,
    policy: (key: string) => policies.get(key),
    madeFrom: (key: string) => policies.byIndex('madeFrom', key),
  };

  const queue = workQueue({
    concurrency: CONCURRENCY,
    maxFailures: MAX_FAILURES,
    backOff,
    process: async (key, signal) => {
      const proposal = proposals.get(key);
      if (proposal === undefined) return void refusals.delete(key);
      const waitMs = refusedForMs(key, proposal);
      if (waitMs > 0) return waitMs;
      const start = performance.now();
      const result = await promotionStep(context, proposal, signal);
      observe?.(result.outcome, performance.now() - start);
      tell(proposal, result);
      if (result.outcome !== 'failed' || result.retryMs === undefined) return void refusals.delete(key);
      const { uid, generation, promote } = proposal;
      refusals.set(key, { uid, generation, promote, untilMs: performance.now() + result.retryMs });
      return result.retryMs;
    },
    onFailure: (key, err, retryMs) => {
      observe?.('error', 0);
      log.warn({ err, proposal: key, retryMs }, 'the proposal is looked at again later');
    },
  });

  function refusedForMs(key: string, { uid, generation, promote }: ProposalSummary): number {
    const refusal = refusals.get(key);
    if (refusal?.uid !== uid || refusal.generation !== generation || refusal.promote !== promote) return 0;
    return refusal.untilMs - performance.now();
  }

  function tell(proposal: ProposalSummary, result: PromotionResult): void {
    const { namespace, name, uid } = proposal;
    const about = { proposal: `${namespace}/${name}` };
    const subject = { apiVersion: API_VERSION, kind: WORKLOAD_POLICY_PROPOSAL_KIND, namespace, name, uid };
    switch (result.outcome) {
      case 'nothing':
        return;
      case 'promoted': {
        const mode = proposal.promote as PolicyMode;
        const { uid: policyUid } = result.policy.metadata;
        events.record({
          subject: {
            ...subject,
            kind: WORKLOAD_POLICY_KIND,
            ...(policyUid !== undefined && { uid: policyUid }),
          },
          type: 'Normal',
          reason: 'Promoted',
          message: `made from the proposal ${name}, in mode ${mode}`,
        });
        log.info({ ...about, mode }, 'proposal promoted');
        return;
      }
      case 'leftoverRemoved': {
        const message = `removed, because the policy ${result.policyName} was made from a proposal of this name: edit the policy`;
        if (result.wasAsked) events.record({ subject, type: 'Normal', reason: 'AlreadyPromoted', message });
        log.info({ ...about, policy: result.policyName }, 'leftover proposal removed');
        return;
      }
      case 'failed':
        if (!result.isNew) return;
        events.record({
          subject,
          type: 'Warning',
          reason: 'PromotionFailed',
          message: `${result.failure.reason}: ${result.failure.message}`,
        });
        log.warn({ ...about, ...result.failure }, 'proposal not promoted');
    }
  }

  const onTrouble = (what: string) => (err: unknown, waitMs: number) =>
    log.warn({ err, waitMs }, `${what} cannot be followed now`);
  const proposalWatch = reflector({
    client,
    resource: WORKLOAD_POLICY_PROPOSALS,
    store: proposals,
    timings,
    onChange: ({ key }) => queue.add(key),
    onTrouble: onTrouble('proposals'),
  });
  const policyWatch = reflector({
    client,
    resource: WORKLOAD_POLICIES,
    store: policies,
    timings,
    onChange: (change) => {
      const concerned = concernedProposals(change.value);
      if (change.type === 'updated') concerned.push(...concernedProposals(change.previous));
      // The rules of policies change often, and most have no proposal any more.
      for (const key of concerned) if (proposals.get(key) !== undefined) queue.add(key);
    },
    onTrouble: onTrouble('policies'),
  });
  const synced = Promise.all([proposalWatch.synced, policyWatch.synced]).then(() => undefined);
  let isStopped = false;

  return {
    name: 'promotion',
    start() {
      proposalWatch.start();
      policyWatch.start();
      // Before every policy is known, any proposal may be a leftover.
      void synced.then(() => {
        if (!isStopped) queue.start();
      });
    },
    async stop() {
      isStopped = true;
      await Promise.all([proposalWatch.stop(), policyWatch.stop(), queue.stop()]);
    },
    synced,
    depth: () => queue.depth().waiting + queue.depth().running,
  };
}
