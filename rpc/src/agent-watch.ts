import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientReadableStream } from '@grpc/grpc-js';
import { AgentCallError, agentCallError } from './agent-call-error.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import { NO_CURSOR, type NodeReport, type WatchCursors } from './reported.ts';

/** Until the first report, which an agent sends at once. */
const FIRST_REPORT_MS = 15_000;
/** Three times what an agent that has nothing to tell lets pass. */
const SILENCE_MS = 90_000;

export interface WatchOptions {
  /** Where to begin: what the reader has stored. From the beginning, where left out. */
  readonly cursors?: Partial<WatchCursors>;
  readonly signal: AbortSignal;
  /** For tests. */
  readonly delayMs?: (failures: number) => number;
  readonly silenceMs?: number;
}

/** `lost`: there is no connection now; the watch goes on by itself after `retryMs` milliseconds. */
export type WatchEvent =
  | { readonly kind: 'report'; readonly report: NodeReport }
  | {
      readonly kind: 'lost';
      readonly error: AgentCallError;
      /** In a row. */
      readonly failures: number;
      readonly retryMs: number;
    };

/** What a watch needs of a connection. */
export interface WatchSource {
  /** How messages name the agent. */
  readonly agent: string;
  open(cursors: WatchCursors): ClientReadableStream<NodeReport>;
  /** The next `open` is to use a new connection. */
  renew(): void;
}

/**
 * Reports of one agent until the signal ends, in order, none left out and none twice, whatever breaks in between: a
 * new call begins behind the last report for which the reader has asked for the next. A reader that is slow makes the
 * agent wait.
 */
export async function* watchAgent(
  source: WatchSource,
  options: WatchOptions,
): AsyncGenerator<WatchEvent, void> {
  const { signal, silenceMs = SILENCE_MS } = options;
  const { delayMs = (count: number) => reconnectDelayMs(count, Math.random()) } = options;
  let cursors: WatchCursors = {
    policies: NO_CURSOR,
    violations: NO_CURSOR,
    observations: NO_CURSOR,
    ...options.cursors,
  };
  let failures = 0;
  const isOver = (): boolean => signal.aborted;
  while (!isOver()) {
    const call = source.open(cursors);
    const cancel = (): void => call.cancel();
    signal.addEventListener('abort', cancel);
    try {
      for await (const report of reports(call, source.agent, silenceMs)) {
        failures = 0;
        yield { kind: 'report', report };
        cursors = advance(cursors, report);
      }
      // The agent ends a watch now and then, so that its reader comes with a new certificate.
      await pause(delayMs(1), signal);
    } catch (cause) {
      if (isOver()) return;
      const error = agentCallError(source.agent, cause);
      const retryMs = delayMs(++failures);
      source.renew();
      yield { kind: 'lost', error, failures, retryMs };
      await pause(retryMs, signal);
    } finally {
      signal.removeEventListener('abort', cancel);
      call.cancel();
    }
  }
}

/** The cursors behind a report. */
export function advance(cursors: WatchCursors, report: NodeReport): WatchCursors {
  return {
    policies: report.policies?.cursor ?? cursors.policies,
    violations: report.violations?.cursor ?? cursors.violations,
    observations: report.observations?.cursor ?? cursors.observations,
  };
}

async function* reports(
  call: ClientReadableStream<NodeReport>,
  agent: string,
  silenceMs: number,
): AsyncGenerator<NodeReport, void> {
  // Errors reach us through the iterator; one that comes after its end has nobody else.
  call.on('error', () => undefined);
  const iterator = (call as AsyncIterable<NodeReport>)[Symbol.asyncIterator]();
  for (let limitMs = Math.min(FIRST_REPORT_MS, silenceMs); ; limitMs = silenceMs) {
    const next = await within(limitMs, iterator.next(), () => {
      call.cancel();
      return new AgentCallError('deadline', `agent ${agent}: it has sent nothing for ${limitMs} ms`);
    });
    if (next.done === true) return;
    yield next.value;
  }
}

async function within<T>(limitMs: number, promise: Promise<T>, late: () => Error): Promise<T> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
