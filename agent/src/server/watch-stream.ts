import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { advance } from '@runtime-enforcer/rpc/agent-watch';
import type { NodeReport, NodeState, ReportedViolation, WatchCursors } from '@runtime-enforcer/rpc/reported';
import { nextTurn } from '../event-loop.ts';
import { logPage, type ReadableLog } from './log-pages.ts';
import type { PolicyRevisions } from './policy-revisions.ts';

/** An agent that has nothing to tell says so this often; a reader gives up after three times as long. */
const HEARTBEAT_MS = 30_000;
/** Changes that come soon after each other go into one report. */
const GATHER_MS = 250;

/** The longest pause between two reports. */
const MAX_PAUSE_MS = 20;

/** What a watch tells of. */
export interface WatchSources {
  readonly node: () => NodeState;
  readonly revisions: PolicyRevisions;
  readonly violations: ReadableLog<ReportedViolation>;
  readonly observations: ReadableLog<NodeObservation>;
  /** Called when node or policies may have changed. @returns ends the calls */
  readonly onChange: (listener: () => void) => () => void;
}

export interface WatchTimings {
  readonly heartbeatMs: number;
  readonly gatherMs: number;
}

/**
 * Sends what there is behind the cursors, then what comes, until the signal ends. Holds one report at a time: a
 * reader that is slow gets the newest states later, not more of them.
 *
 * Rejects with what `send` rejects with.
 */
export async function streamReports(
  sources: WatchSources,
  start: WatchCursors,
  send: (report: NodeReport) => Promise<void>,
  signal: AbortSignal,
  { heartbeatMs = HEARTBEAT_MS, gatherMs = GATHER_MS }: Partial<WatchTimings> = {},
): Promise<void> {
  const waiting = createWakeUp(signal);
  const stops = [sources.violations, sources.observations, sources].map((source) =>
    source.onChange(waiting.wake),
  );
  let cursors = start;
  let toldNode = '';
  let heartbeatAt = 0;
  try {
    while (!signal.aborted) {
      await nextTurn();
      const startMs = performance.now();
      const node = sources.node();
      const isNew = JSON.stringify(node) !== toldNode;
      const report: NodeReport = { ...(isNew && { node }), ...changes(sources, cursors) };
      const isEmpty = Object.keys(report).length === 0;
      if (isEmpty && performance.now() < heartbeatAt) {
        await waiting.until(heartbeatAt);
        await waiting.pause(gatherMs);
        continue;
      }
      const sent = send(report);
      const tookMs = performance.now() - startMs;
      await sent;
      if (isNew) toldNode = JSON.stringify(node);
      cursors = advance(cursors, report);
      heartbeatAt = performance.now() + heartbeatMs;
      // A reader that is far behind gets half of the loop's time at most, and everything else the other half.
      await waiting.pause(Math.min(tookMs, MAX_PAUSE_MS));
    }
  } finally {
    for (const stop of stops) stop();
    waiting.stop();
  }
}

function changes(sources: WatchSources, cursors: WatchCursors): NodeReport {
  const policies = sources.revisions.changedSince(cursors.policies);
  const violations = logPage(sources.violations, cursors.violations, ({ occurrences }) => occurrences);
  const observations = logPage(sources.observations, cursors.observations, ({ count }) => count);
  return {
    ...(policies && { policies }),
    ...(violations && { violations }),
    ...(observations && { observations }),
  };
}

interface WakeUp {
  readonly wake: () => void;
  /** Resolves at the time, or at once when there has been a `wake` since the last call, or when the signal ends. */
  until(atMs: number): Promise<void>;
  /** Resolves after the time, or when the signal ends. */
  pause(ms: number): Promise<void>;
  stop(): void;
}

function createWakeUp(signal: AbortSignal): WakeUp {
  let isDue = false;
  let resume: (() => void) | undefined;
  const wake = (): void => {
    isDue = true;
    resume?.();
  };
  const sleep = async (ms: number, isInterrupted: () => boolean): Promise<void> => {
    if (isInterrupted()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, Math.max(0, ms));
      function done(): void {
        clearTimeout(timer);
        resume = undefined;
        resolve();
      }
      resume = () => {
        if (isInterrupted()) done();
      };
    });
  };
  const onAbort = (): void => resume?.();
  signal.addEventListener('abort', onAbort);
  return {
    wake,
    async until(atMs) {
      await sleep(atMs - performance.now(), () => isDue || signal.aborted);
      isDue = false;
    },
    pause: (ms) => sleep(ms, () => signal.aborted),
    stop: () => signal.removeEventListener('abort', onAbort),
  };
}
