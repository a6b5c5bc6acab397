import type { LearnedPath } from '@runtime-enforcer/api/learned-paths';
import { MAX_LEARNED_PATHS } from '@runtime-enforcer/api/limits';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { ApiError } from '@runtime-enforcer/kube/api-error';
import type { BackOffSettings } from '@runtime-enforcer/kube/back-off';
import { workQueue } from '@runtime-enforcer/kube/work-queue';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { OwnedWorkload } from './owner-chain.ts';
import {
  EndingProposalError,
  pathKey,
  type ProposalUpdate,
  UnusableProposalError,
} from './proposal-object.ts';
import { writeProposal } from './proposal-request.ts';
import { createRequestPace } from './request-pace.ts';

const UNPROCESSABLE = 422;
const GONE = 410;
const NAMESPACE_ENDS = 'NamespaceTerminating';
const NOT_FOUND = 'NotFound';
/** Different paths of one workload that wait. More than a proposal takes, because other nodes may have taken some out. */
const MAX_WAITING = 4 * MAX_LEARNED_PATHS;
/** Paths for which there was no room that are remembered, to be asked for no more. */
const MAX_REFUSED = 1_000;
/** Workloads of a node: a tenant can make them without end. */
const MAX_WORKLOADS = 2_000;
/** Answers that a workload's owner is gone, after which what waits is given up. */
const MAX_GONE = 5;
const MAX_CONCURRENT = 2;

export interface WriterTimings {
  /** New paths wait so long, so that a container's start is one write. Half of it is chance. */
  readonly gatherMs: number;
  /** Between two writes of one proposal. */
  readonly intervalMs: number;
  readonly writesPerSecond: number;
  readonly burst: number;
  /** After what no repetition repairs soon: a proposal that is not valid, or that is ending. */
  readonly brokenMs: number;
  readonly endingMs: number;
  /** What the API alone told to be promoted is taken to be so long before it is asked again. */
  readonly promotedMs: number;
  /** After so long a proposal is read again when its paths repeat: somebody may have removed some, or all. */
  readonly freshMs: number;
  readonly backOff: BackOffSettings;
  /** For what waits when the agent ends. */
  readonly flushMs: number;
}

export const WRITER_TIMINGS: WriterTimings = {
  gatherMs: 1_000,
  intervalMs: 5_000,
  writesPerSecond: 1,
  burst: 5,
  brokenMs: 5 * 60_000,
  endingMs: 15_000,
  promotedMs: 30_000,
  freshMs: 10 * 60_000,
  backOff: { baseMs: 500, maxMs: 30_000, jitter: 1 },
  flushMs: 5_000,
};

/** `stopped`: the workload has its policy, or is getting it. `refused`: the proposal has no room. */
export type Offer = 'listed' | 'waiting' | 'refused' | 'stopped';

/** Brings paths into the proposals of their workloads, and never too often. */
export interface ProposalWriter {
  start(): void;
  /** What is to become of a path. `waiting` ends with a call of `onSettled`. Never waits itself. */
  offer(name: string, workload: OwnedWorkload, path: LearnedPath): Offer;
  /** Forgets the workloads of which nothing waits and that are not in use. Keys are `namespace/proposal`. */
  retain(inUse: ReadonlySet<string>): void;
  /** It may be learned again, or no more. */
  promotionChanged(key: string): void;
  /** Paths that wait, over all workloads. */
  waiting(): number;
  /** Writes what waits while there is time, then ends. */
  stop(): Promise<void>;
}

interface Proposal {
  readonly name: string;
  workload: OwnedWorkload;
  waiting: Map<string, LearnedPath>;
  /** As it was read or written last; undefined before that. */
  listed: ReadonlySet<string> | undefined;
  readonly refused: Set<string>;
  readAtMs: number;
  nextWriteMs: number;
  stoppedUntilMs: number;
  gone: number;
  saidFull: boolean;
  /** What was said last of a failure. */
  said: string;
}

export function createProposalWriter(options: {
  readonly client: ApiClient;
  /** Whether nothing is to be learned for a proposal, by `namespace` and name. */
  readonly isStopped: (namespace: string, name: string) => boolean;
  /** Told the proposal of which offers may have another answer now. */
  readonly onSettled: (key: string) => void;
  readonly log: Logger;
  readonly counters: AgentCounters;
  readonly timings?: Partial<WriterTimings>;
}): ProposalWriter {
  const { client, isStopped, onSettled, log, counters } = options;
  const timings: WriterTimings = { ...WRITER_TIMINGS, ...options.timings };
  const pace = createRequestPace({ perSecond: timings.writesPerSecond, burst: timings.burst });
  const proposals = new Map<string, Proposal>();
  let stopping = false;
  /** The API server asked all to wait until then. */
  let heldUntilMs = 0;

  const say = (key: string, proposal: Proposal, error: unknown, level: 'warn' | 'error'): void => {
    const text = error instanceof Error ? error.message : String(error);
    if (proposal.said === text) return;
    proposal.said = text;
    log[level]({ err: error, proposal: key }, 'proposal cannot be written; its paths wait');
  };

  /** Gives up what waits. */
  const drop = (key: string, proposal: Proposal, why: string): void => {
    counters.add('learned_paths_lost', proposal.waiting.size);
    log.warn({ proposal: key, paths: proposal.waiting.size, why }, 'learned paths were given up');
    proposal.waiting.clear();
    onSettled(key);
  };

  const taken = (key: string, proposal: Proposal, update: ProposalUpdate): void => {
    const { added, refused, listed } = update;
    proposal.listed = listed;
    proposal.readAtMs = performance.now();
    proposal.said = '';
    proposal.gone = 0;
    for (const path of refused) {
      if (proposal.refused.size < MAX_REFUSED) proposal.refused.add(pathKey(path));
      proposal.waiting.delete(pathKey(path));
    }
    for (const id of proposal.waiting.keys()) if (listed.has(id)) proposal.waiting.delete(id);
    if (added.length > 0) {
      counters.add('proposal_writes');
      log.info({ proposal: key, added: added.map(pathKey) }, 'proposal has new paths');
    }
    if (refused.length > 0 && !proposal.saidFull) {
      proposal.saidFull = true;
      log.warn(
        { proposal: key, refused: refused.length },
        'executables were left out of a proposal: it is full; add what is missing by hand',
      );
    }
    onSettled(key);
  };

  const stopLearning = (key: string, proposal: Proposal): void => {
    proposal.waiting.clear();
    proposal.listed = undefined;
    proposal.refused.clear();
    onSettled(key);
  };

  /** @returns when to try again, for what is no failure of the API; undefined if all is done */
  const attempt = async (key: string, signal: AbortSignal): Promise<number | undefined> => {
    const proposal = proposals.get(key);
    if (proposal === undefined) return undefined;
    const isStale = performance.now() - proposal.readAtMs >= timings.freshMs;
    if (proposal.waiting.size === 0 && !isStale) return undefined;
    const { namespace } = proposal.workload;
    if (isStopped(namespace, proposal.name)) {
      stopLearning(key, proposal);
      return undefined;
    }
    try {
      const result = await writeProposal(client, proposal, signal);
      if (result === 'marked') proposal.stoppedUntilMs = performance.now() + timings.promotedMs;
      if (result === 'marked' || result === 'absent') stopLearning(key, proposal);
      else taken(key, proposal, result);
      return undefined;
    } catch (error) {
      return failed(key, proposal, error);
    }
  };

  const failed = (key: string, proposal: Proposal, error: unknown): number => {
    const holdFor = (ms: number): number => {
      proposal.nextWriteMs = performance.now() + ms;
      return ms;
    };
    if (error instanceof EndingProposalError) {
      say(key, proposal, error, 'warn');
      return holdFor(timings.endingMs);
    }
    if (
      error instanceof UnusableProposalError ||
      (error instanceof ApiError && error.code === UNPROCESSABLE)
    ) {
      counters.add('proposal_failures');
      say(key, proposal, error, 'error');
      return holdFor(timings.brokenMs);
    }
    throw error;
  };

  const queue = workQueue({
    concurrency: MAX_CONCURRENT,
    backOff: timings.backOff,
    maxFailures: Number.POSITIVE_INFINITY,
    async process(key, signal) {
      const proposal = proposals.get(key);
      if (proposal === undefined) return undefined;
      const earlyMs = Math.max(proposal.nextWriteMs, heldUntilMs) - performance.now();
      if (earlyMs > 0) return earlyMs;
      await pace.turn(signal);
      proposal.nextWriteMs = performance.now() + timings.intervalMs;
      return await attempt(key, signal);
    },
    onFailure(key, error, retryMs = 0) {
      const proposal = proposals.get(key);
      counters.add('proposal_failures');
      const isAsked = error instanceof ApiError && error.retryAfterMs !== undefined;
      if (isAsked) heldUntilMs = Math.max(heldUntilMs, performance.now() + retryMs);
      if (proposal === undefined) return;
      // Paths that come meanwhile must not bring the next try forward.
      proposal.nextWriteMs = performance.now() + retryMs;
      // Nothing can be made in a namespace that ends, or that is gone. A server that lacks the CRD names no reason.
      const ends =
        error instanceof ApiError && (error.causes.includes(NAMESPACE_ENDS) || error.reason === NOT_FOUND);
      if (ends) {
        drop(key, proposal, 'the namespace is ending');
        return;
      }
      proposal.gone = error instanceof ApiError && error.code === GONE ? proposal.gone + 1 : 0;
      if (proposal.gone >= MAX_GONE) drop(key, proposal, 'the workload is gone');
      else say(key, proposal, error, 'warn');
    },
  });

  const proposalOf = (key: string, name: string, workload: OwnedWorkload): Proposal | undefined => {
    const known = proposals.get(key);
    if (known !== undefined) {
      if (known.workload.uid !== workload.uid) {
        known.workload = workload;
        known.listed = undefined;
        known.refused.clear();
      }
      return known;
    }
    if (proposals.size >= MAX_WORKLOADS) return undefined;
    const made: Proposal = {
      ...{
        name,
        workload,
        waiting: new Map<string, LearnedPath>(),
        listed: undefined,
        refused: new Set<string>(),
      },
      ...{
        readAtMs: Number.NEGATIVE_INFINITY,
        nextWriteMs: 0,
        stoppedUntilMs: 0,
        gone: 0,
        saidFull: false,
        said: '',
      },
    };
    proposals.set(key, made);
    return made;
  };

  const schedule = (key: string, { nextWriteMs }: Proposal): void => {
    const gatherMs = timings.gatherMs * (0.5 + Math.random());
    queue.addAfter(key, Math.max(gatherMs, nextWriteMs - performance.now()));
  };

  return {
    start: () => queue.start(),
    offer(name, workload, path) {
      if (isStopped(workload.namespace, name)) return 'stopped';
      const key = `${workload.namespace}/${name}`;
      const proposal = proposalOf(key, name, workload);
      if (proposal === undefined) return 'refused';
      if (performance.now() < proposal.stoppedUntilMs) return 'stopped';
      const id = pathKey(path);
      if (proposal.listed !== undefined && performance.now() - proposal.readAtMs >= timings.freshMs) {
        proposal.refused.clear();
        schedule(key, proposal);
      }
      if (proposal.listed?.has(id) === true) return 'listed';
      if (proposal.refused.has(id)) return 'refused';
      if (proposal.waiting.has(id)) return 'waiting';
      if (proposal.waiting.size >= MAX_WAITING || stopping) return 'refused';
      proposal.waiting.set(id, path);
      schedule(key, proposal);
      return 'waiting';
    },
    retain(inUse) {
      for (const [key, { waiting }] of proposals) {
        if (waiting.size === 0 && !inUse.has(key)) proposals.delete(key);
      }
    },
    promotionChanged(key) {
      const proposal = proposals.get(key);
      if (proposal === undefined) return;
      proposal.stoppedUntilMs = 0;
      if (isStopped(proposal.workload.namespace, proposal.name)) stopLearning(key, proposal);
      else onSettled(key);
    },
    waiting() {
      let sum = 0;
      for (const { waiting } of proposals.values()) sum += waiting.size;
      return sum;
    },
    async stop() {
      stopping = true;
      await queue.stop();
      const signal = AbortSignal.timeout(timings.flushMs);
      const left = [...proposals].filter(([, { waiting }]) => waiting.size > 0);
      const flushNext = async (): Promise<void> => {
        for (let next = left.shift(); next !== undefined && !signal.aborted; next = left.shift()) {
          const [key, proposal] = next;
          await attempt(key, signal).catch((error: unknown) => say(key, proposal, error, 'warn'));
        }
      };
      await Promise.all(Array.from({ length: MAX_CONCURRENT }, flushNext));
    },
  };
}
