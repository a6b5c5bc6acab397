import type { ExportCounts, LogExport } from '@runtime-enforcer/telemetry/log-export';
import { Counter, Gauge, type Registry } from 'prom-client';

/** What is kept of violations and observations until a reader has it, and what is sent to a collector. */
export interface ReportSource {
  /** By what they hold, such as `violations`. */
  readonly logs: Readonly<
    Record<string, { readonly size: { readonly keys: number; readonly entries: number } }>
  >;
  readonly journal?: { readonly bytes: number; readonly waiting: number };
  readonly export?: Pick<LogExport, 'counts' | 'waiting'>;
}

/** Adds the metrics of a source to a registry. What there is no source for is not shown. */
export function observeReports(registry: Registry, source: ReportSource): void {
  const registers = [registry];
  const logs = Object.entries(source.logs);
  new Gauge({
    name: 'runtime_enforcer_log_keys',
    help: 'Different violations and observations that are kept for readers.',
    labelNames: ['log'],
    registers,
    collect() {
      for (const [log, { size }] of logs) this.set({ log }, size.keys);
    },
  });
  new Gauge({
    name: 'runtime_enforcer_log_entries',
    help: 'All their states that are kept, those included that a reader has not acknowledged.',
    labelNames: ['log'],
    registers,
    collect() {
      for (const [log, { size }] of logs) this.set({ log }, size.entries);
    },
  });
  const { journal, export: logExport } = source;
  new Gauge({
    name: 'runtime_enforcer_queue_depth',
    help: 'What waits, by what it waits for.',
    labelNames: ['queue'],
    registers,
    collect() {
      if (journal !== undefined) this.set({ queue: 'journal' }, journal.waiting);
      if (logExport !== undefined) this.set({ queue: 'export' }, logExport.waiting);
    },
  });
  if (journal !== undefined) {
    new Gauge({
      name: 'runtime_enforcer_journal_bytes',
      help: 'Size of the journal on disk.',
      registers,
      collect() {
        this.set(journal.bytes);
      },
    });
  }
  if (logExport !== undefined) observeExport(registry, () => logExport.counts());
}

function observeExport(registry: Registry, counts: () => ExportCounts): void {
  const counter = (name: string, help: string, labelNames: string[], read: (to: Counter) => void): void => {
    new Counter({
      name: `runtime_enforcer_export_${name}_total`,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        read(this);
      },
    });
  };
  counter('records', 'Records that the collector has confirmed.', [], (to) =>
    to.inc(counts().exported.records),
  );
  counter('occurrences', 'Violations that they stand for.', [], (to) =>
    to.inc(counts().exported.occurrences),
  );
  counter('failures', 'Attempts to send records that failed.', [], (to) => to.inc(counts().failures));
  counter('lost_records', 'Records that the collector has not got, by reason.', ['reason'], (to) => {
    for (const [reason, { records }] of Object.entries(counts().lost)) to.inc({ reason }, records);
  });
  counter('lost_occurrences', 'Violations that they stood for.', ['reason'], (to) => {
    for (const [reason, { occurrences }] of Object.entries(counts().lost)) to.inc({ reason }, occurrences);
  });
}
