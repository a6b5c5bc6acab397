import { setTimeout as delay } from 'node:timers/promises';
import type { RunContext } from '../commands/run-context.ts';
import { createStopStack, type StopStack } from '../commands/stop-stack.ts';
import type { Ownership } from '../kernel/owner-lock.ts';
import { describeAgent, type AgentIdentity } from '../node/agent-identity.ts';
import { askForNode, createHandoverSocket, handoverPath } from '../node/handover.ts';
import type { FitNode } from '../node/kernel-side.ts';

/** Pause before an owner is asked again that could not be reached. */
const ASK_AGAIN_MS = 250;
/** And one that did not answer. */
const ASK_SILENT_AGAIN_MS = 5_000;

/** The time in which this agent owns its node. */
export interface NodeTerm {
  /** What was started in it; stopped in the opposite order, and the lock is free only then. */
  readonly stops: StopStack;
  /** Aborted when it ends. */
  readonly signal: AbortSignal;
  /** Whether it ends because another agent has asked for the node. */
  readonly isHandingOver: boolean;
}

/** The terms of an agent on its node, one after the other. */
export interface NodeTerms {
  /**
   * Owns the node whenever it can: first by asking the present owner, later when that one's successor has ended.
   * Rejects if `serve` does, or if a term could not be ended in order.
   */
  run(): Promise<void>;
  /** Ends the present term. */
  stop(): Promise<void>;
}

/**
 * @param serve does an owner's work in a term; resolves when the next term is to begin. Errors of a term that is over
 *   are of no interest
 * @param onStandby told in a sentence why this agent does not own its node; undefined: it does
 */
export function createNodeTerms(parts: {
  context: Pick<RunContext, 'log' | 'termination'>;
  node: FitNode;
  self: AgentIdentity;
  serve: (term: NodeTerm) => Promise<void>;
  onStandby: (sentence: string | undefined) => void;
}): NodeTerms {
  const { node, self, serve, onStandby } = parts;
  const { log, termination } = parts.context;
  const path = handoverPath(node.lockPath);
  /** Pods that this one took the node over from: what restarts there, is not newer than this. */
  const predecessors = new Set<string>();
  let mayAsk = true;
  /** Says more than that the lock is held, whichever is known first. */
  let isRefused = false;
  let endPresent = (): Promise<void> => Promise.resolve();

  const keepAsking = async (owned: AbortSignal): Promise<void> => {
    const pause = (ms: number) => delay(ms, undefined, { signal: owned }).catch(() => undefined);
    const isOwned = (): boolean => owned.aborted;
    while (!isOwned()) {
      const answer = await askForNode({ path, self, done: owned });
      if (isOwned() && answer.kind !== 'accepted') return;
      switch (answer.kind) {
        case 'accepted':
          for (const pod of answer.predecessors) if (pod !== self.pod) predecessors.add(pod);
          log.info({}, 'the agent of this node hands it over');
          await answer.ended;
          if (!isOwned()) log.warn({}, 'the agent of this node has not handed it over; asking again');
          break;
        case 'refused':
          isRefused = true;
          log.warn({ reason: answer.reason }, 'the agent of this node keeps it; standing by');
          onStandby(`another agent keeps this node: ${answer.reason}; taking over when it ends`);
          return;
        case 'silent':
          log.warn(
            { reason: answer.reason },
            'the agent of this node does not answer and keeps it; asking again',
          );
          await pause(ASK_SILENT_AGAIN_MS);
          break;
        case 'nobody':
          await pause(ASK_AGAIN_MS);
      }
    }
  };

  const own = async (): Promise<Pick<Ownership, 'release'>> => {
    const owned = new AbortController();
    isRefused = false;
    const asking = mayAsk ? keepAsking(owned.signal) : Promise.resolve();
    const onWait = (sentence: string): void => {
      log.warn({}, sentence);
      if (mayAsk && !isRefused) onStandby(sentence);
    };
    try {
      return await node.own({ signal: termination, onWait });
    } finally {
      owned.abort();
      await asking;
    }
  };

  /** Resolves with how it was handed over, or undefined if this agent begins anew. */
  const holdTerm = async (ownership: Pick<Ownership, 'release'>): Promise<Handover | undefined> => {
    const over = new AbortController();
    const handover = Promise.withResolvers<Handover>();
    const problems: string[] = [];
    const stops = createStopStack((part, error) => {
      problems.push(part);
      log.error({ err: error, part }, 'a part of the agent did not stop in order');
    });
    let isHandingOver = false;
    let serving: Promise<void> = Promise.resolve();
    let ending: Promise<void> | undefined;
    const end = async (): Promise<void> => {
      socket.stop();
      over.abort();
      await stops.stop();
      await serving.catch(() => undefined);
      // What was being started meanwhile.
      await stops.stop();
      // While a part still works, another agent must not: its end, with that of this process, frees the lock.
      if (problems.length === 0 || termination.aborted) ownership.release();
    };
    const endOnce = (): Promise<void> => (ending ??= end());
    endPresent = endOnce;
    const checked = async (): Promise<void> => {
      await endOnce();
      if (problems.length > 0) throw new Error(`these did not stop in order: ${problems.join(', ')}`);
    };

    const socket = createHandoverSocket({
      path,
      predecessors: () => [...predecessors, ...(self.pod === '' ? [] : [self.pod])],
      refuse: ({ pod }) =>
        predecessors.has(pod) ? `pod ${pod} has handed this node over before` : undefined,
      async handOver(successor, taken) {
        isHandingOver = true;
        log.info({ successor }, 'handing this node over');
        onStandby(`handing this node over to ${describeAgent(successor)}`);
        try {
          await checked();
          handover.resolve({ successor, taken });
        } catch (error) {
          handover.reject(error);
          throw error;
        }
      },
    });
    await socket.start();
    const { signal } = over;
    if (signal.aborted) return handover.promise;
    onStandby(undefined);
    serving = serve({
      ...{ stops, signal },
      get isHandingOver() {
        return isHandingOver;
      },
    });
    const anew = serving.then(
      () => (signal.aborted ? handover.promise : undefined),
      (error: unknown) => {
        if (signal.aborted) return handover.promise;
        throw error;
      },
    );
    const outcome = await Promise.race([handover.promise, anew]);
    if (outcome === undefined) await checked();
    return outcome;
  };

  return {
    async run() {
      while (!termination.aborted) {
        const handover = await holdTerm(await own());
        if (handover === undefined) continue;
        const successor = describeAgent(handover.successor);
        log.info({}, `handed this node over to ${successor}; standing by`);
        onStandby(`handed this node over to ${successor}; taking over again if it ends`);
        mayAsk = false;
        await handover.taken;
      }
    },
    stop: () => endPresent(),
  };
}

interface Handover {
  readonly successor: AgentIdentity;
  readonly taken: Promise<void>;
}
