import { SeverityNumber } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { LoggerProvider, type LogRecordExporter, type ReadableLogRecord } from '@opentelemetry/sdk-logs';
import { createBoundedLogProcessor, type LossReason } from './bounded-log-processor.ts';
import { describeError } from './error-text.ts';
import type { Logger } from './logger.ts';
import { createOtlpExporter, type OtlpTarget } from './otlp-exporter.ts';

const EXPORT_TIMEOUT_MS = 10_000;
/** Beyond the exporter's own time. */
const PATIENCE_MS = 2_000;

/** Something that happened, as a log record of OpenTelemetry: its name is the event name and the body. */
export interface ExportedEvent {
  readonly name: string;
  readonly severity: 'INFO' | 'WARN';
  /** `count`, where there is one, is the number of occurrences that the event stands for. */
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

/** What became of the events so far, `lost` by reason. */
export interface ExportCounts {
  readonly exported: { readonly records: number; readonly occurrences: number };
  readonly lost: Readonly<Record<LossReason, { readonly records: number; readonly occurrences: number }>>;
  readonly failures: number;
}

export interface LogExport {
  /** Never waits and never throws. */
  emit(event: ExportedEvent): void;
  counts(): ExportCounts;
  /** Records that wait or are on their way. */
  readonly waiting: number;
  /** Sends what waits, for at most `timeoutMs`. */
  stop(timeoutMs: number): Promise<void>;
}

/**
 * Sends events to an OpenTelemetry collector, over gRPC or HTTP, with TLS material that may be replaced meanwhile.
 * A collector that is dead, slow or silent costs nothing but events, and those are counted.
 *
 * @param options.scope name of the instrumentation scope
 * @param options.resource attributes of the program itself
 * @throws Error if the endpoint is none for its protocol
 */
export function createLogExport(options: {
  target: OtlpTarget;
  scope: string;
  resource: Readonly<Record<string, string>>;
  log: Logger;
  timeoutMs?: number;
  gatherMs?: number;
}): LogExport {
  const { target, scope, resource, log, timeoutMs = EXPORT_TIMEOUT_MS, gatherMs } = options;
  let exporter: LogRecordExporter | undefined = createOtlpExporter(target, timeoutMs);
  let trouble = '';
  const none = (): { records: number; occurrences: number } => ({ records: 0, occurrences: 0 });
  const exported = none();
  const lost = { queue_full: none(), refused: none(), unconfirmed: none(), stopped: none() };
  let failures = 0;

  const add = (to: { records: number; occurrences: number }, records: readonly ReadableLogRecord[]): void => {
    to.records += records.length;
    for (const { attributes } of records) to.occurrences += Number(attributes['count'] ?? 1);
  };
  const close = (closing: LogRecordExporter | undefined): void => {
    // What it still has on its way is confirmed first.
    void closing
      ?.forceFlush()
      .then(() => closing.shutdown())
      .catch(() => undefined);
  };
  const endChanges = target.tls?.onChange(() => {
    close(exporter);
    exporter = undefined;
  });
  const processor = createBoundedLogProcessor({
    exporter: () => (exporter ??= createOtlpExporter(target, timeoutMs)),
    patienceMs: timeoutMs + PATIENCE_MS,
    ...(gatherMs !== undefined && { gatherMs }),
    onExported(records) {
      add(exported, records);
      if (trouble !== '') log.info({ endpoint: target.endpoint }, 'the collector takes records again');
      trouble = '';
    },
    onLost: (records, reason) => add(lost[reason], records),
    onFailure(error) {
      failures++;
      const problem = describeError(error);
      if (problem !== trouble) {
        log.warn({ endpoint: target.endpoint, problem }, 'records cannot be sent to the collector');
      }
      trouble = problem;
    },
  });
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ ...resource }),
    processors: [processor],
  });
  const logger = provider.getLogger(scope);

  return {
    emit({ name, severity, attributes }) {
      logger.emit({
        eventName: name,
        body: name,
        severityNumber: severity === 'WARN' ? SeverityNumber.WARN : SeverityNumber.INFO,
        severityText: severity,
        timestamp: Date.now(),
        attributes: { ...attributes },
      });
    },
    counts: () => ({
      exported: { ...exported },
      lost: {
        queue_full: { ...lost.queue_full },
        refused: { ...lost.refused },
        unconfirmed: { ...lost.unconfirmed },
        stopped: { ...lost.stopped },
      },
      failures,
    }),
    get waiting() {
      return processor.waiting;
    },
    async stop(stopMs) {
      endChanges?.();
      await processor.stop(stopMs);
      await provider.shutdown();
      close(exporter);
    },
  };
}
