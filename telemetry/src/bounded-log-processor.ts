import { ExportResultCode } from '@opentelemetry/core';
import type { LogRecordExporter, LogRecordProcessor, ReadableLogRecord } from '@opentelemetry/sdk-logs';

/** Records that wait for the collector. */
const MAX_WAITING = 2_048;
const MAX_BATCH = 512;
/** How long records are gathered before they are sent. */
const GATHER_MS = 1_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

/**
 * Why a record did not arrive: there was no room for it, the collector refused it, it was sent and nobody knows what
 * became of it, or the program ended before.
 */
export type LossReason = 'queue_full' | 'refused' | 'unconfirmed' | 'stopped';

export interface BoundedLogProcessor extends LogRecordProcessor {
  /** Records that wait or are on their way. */
  readonly waiting: number;
  /** Sends what waits, for at most `timeoutMs`; what is left is lost. */
  stop(timeoutMs: number): Promise<void>;
}

/**
 * Hands records to an exporter in batches, one at a time. Emitting never waits: what a dead or slow collector does not
 * take is lost beyond a bound, and every record is counted exactly once, as exported or as lost. A batch is sent again
 * only if it cannot have arrived, so that the collector counts nothing twice.
 */
export function createBoundedLogProcessor(options: {
  /** Asked for each batch. */
  exporter: () => LogRecordExporter;
  onExported: (records: readonly ReadableLogRecord[]) => void;
  onLost: (records: readonly ReadableLogRecord[], reason: LossReason) => void;
  /** Told of each failed attempt. */
  onFailure: (error: unknown) => void;
  /** After which a batch that was not confirmed is lost; the exporter's own time is to be shorter. */
  patienceMs: number;
  maxWaiting?: number;
  gatherMs?: number;
}): BoundedLogProcessor {
  const { exporter, onExported, onLost, onFailure, patienceMs } = options;
  const { maxWaiting = MAX_WAITING, gatherMs = GATHER_MS } = options;
  const queue: ReadableLogRecord[] = [];
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let retryMs = 0;
  let stopped = false;

  const sendOnce = async (): Promise<void> => {
    const batch = queue.slice(0, MAX_BATCH);
    const outcome = await exportBatch(exporter, batch, patienceMs);
    if (outcome.kind !== 'delivered') onFailure(outcome.error);
    if (outcome.kind === 'not delivered') {
      retryMs = Math.min(retryMs === 0 ? FIRST_RETRY_MS : retryMs * 2, MAX_RETRY_MS);
      return;
    }
    retryMs = outcome.kind === 'unconfirmed' ? Math.max(retryMs, FIRST_RETRY_MS) : 0;
    queue.splice(0, batch.length);
    if (outcome.kind === 'delivered') onExported(batch);
    else onLost(batch, outcome.kind);
  };
  const send = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    sending ??= sendOnce().finally(() => {
      sending = undefined;
      if (queue.length > 0 && !stopped) schedule();
    });
    return sending;
  };
  const schedule = (): void => {
    if (sending !== undefined || (timer !== undefined && (retryMs > 0 || queue.length < MAX_BATCH))) return;
    clearTimeout(timer);
    timer = setTimeout(() => void send(), retryMs > 0 ? retryMs : queue.length >= MAX_BATCH ? 0 : gatherMs);
    timer.unref();
  };

  const processor: BoundedLogProcessor = {
    get waiting() {
      return queue.length;
    },
    onEmit(record) {
      if (stopped || queue.length >= maxWaiting) {
        onLost([record], stopped ? 'stopped' : 'queue_full');
        return;
      }
      queue.push(record);
      schedule();
    },
    async forceFlush() {
      while (queue.length > 0 && !stopped) {
        const before = queue.length;
        await send();
        if (queue.length >= before) return;
      }
    },
    shutdown: () => processor.stop(0),
    async stop(timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const limit = setTimeout(() => resolve(undefined), timeoutMs);
      await Promise.race([processor.forceFlush(), promise]);
      clearTimeout(limit);
      clearTimeout(timer);
      if (stopped) return;
      stopped = true;
      if (queue.length > 0) onLost(queue.splice(0), 'stopped');
    },
  };
  return processor;
}

type Outcome =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'not delivered' | 'refused' | 'unconfirmed'; readonly error: unknown };

async function exportBatch(
  exporter: () => LogRecordExporter,
  batch: ReadableLogRecord[],
  patienceMs: number,
): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const limit = setTimeout(() => {
    resolve({
      kind: 'unconfirmed',
      error: new Error(`the collector did not answer within ${patienceMs} ms`),
    });
  }, patienceMs);
  try {
    exporter().export(batch, ({ code, error }) => {
      resolve(
        code === ExportResultCode.SUCCESS ? { kind: 'delivered' } : { kind: failureKind(error), error },
      );
    });
    return await promise;
  } catch (error) {
    return { kind: 'refused', error };
  } finally {
    clearTimeout(limit);
  }
}

/** Codes of an export that did not reach a collector, or that it put off: of gRPC, HTTP and Node's sockets. */
const PUT_OFF = new Set<unknown>([
  ...[8, 14, 429, 502, 503],
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
]);
const DEADLINE_EXCEEDED = 4;
const TIMED_OUT = 'Request timed out';

function failureKind(error: unknown): 'not delivered' | 'refused' | 'unconfirmed' {
  if (typeof error !== 'object' || error === null) return 'unconfirmed';
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (PUT_OFF.has(code)) return 'not delivered';
  if (code === DEADLINE_EXCEEDED || message === TIMED_OUT || code === 'ECONNRESET' || code === 'EPIPE') {
    return 'unconfirmed';
  }
  return 'refused';
}
