import { afterEach, expect, it } from 'vitest';
import { startMetrics, type AgentMetrics, type MetricsSource } from './metrics.ts';
import type { ReportSource } from './report-metrics.ts';

let metrics: AgentMetrics | undefined;
afterEach(() => metrics?.stop());

function source(more: Partial<MetricsSource> = {}): MetricsSource {
  return {
    outcomes: () => Promise.resolve({ denied: 3n, allowed: 2n ** 40n, violation_ring_full: 5n }),
    recursionMisses: () => 7n,
    attachment: { kind: 'lsm', programs: 'check_lsm', adopted: 'fresh', kernel: '6.12.0' },
    degraded: false,
    override: () => 'none',
    policies: () => new Map([['ready', 2]]),
    containers: () => new Map([['enforced', 1]]),
    nriConnected: () => true,
    attached: () => true,
    ...more,
  };
}

const NONE = { records: 0, occurrences: 0 };
const REPORTS: ReportSource = {
  logs: { violations: { size: { keys: 2, entries: 3 } } },
  journal: { bytes: 1234, waiting: 4 },
  export: {
    waiting: 6,
    counts: () => ({
      exported: { records: 7, occurrences: 70 },
      lost: { queue_full: { records: 8, occurrences: 80 }, refused: NONE, unconfirmed: NONE, stopped: NONE },
      failures: 1,
    }),
  },
};

it('renders counters of the agent, of NRI and of the kernel', async () => {
  metrics = startMetrics();
  metrics.observe(source());
  metrics.counters.add('containers_refused');
  metrics.counters.add('containers_refused', 2);
  metrics.counters.add('log_lines_dropped', 2);
  metrics.nri.increment('requests', 'StartContainer');
  metrics.nri.answered?.('StartContainer', 0.003);
  metrics.observeReports(REPORTS);
  metrics.failures('reconcile');
  const text = await metrics.text();
  for (const line of [
    'runtime_enforcer_containers_refused_total 3',
    'runtime_enforcer_nri_requests_total{method="StartContainer"} 1',
    'runtime_enforcer_failures_total{place="reconcile"} 1',
    'runtime_enforcer_exec_outcomes_total{outcome="denied"} 3',
    'runtime_enforcer_exec_outcomes_total{outcome="allowed"} 1099511627776',
    'runtime_enforcer_recursion_misses_total 7',
    'runtime_enforcer_attachment_info{kind="lsm",programs="check_lsm",adopted="fresh",kernel="6.12.0"} 1',
    'runtime_enforcer_degraded 0',
    'runtime_enforcer_drops_total{place="violation_ring"} 5',
    'runtime_enforcer_drops_total{place="log"} 2',
    'runtime_enforcer_nri_answer_seconds_bucket{le="0.005",method="StartContainer"} 1',
    'runtime_enforcer_nri_answer_seconds_bucket{le="0.002",method="StartContainer"} 0',
    'runtime_enforcer_log_keys{log="violations"} 2',
    'runtime_enforcer_log_entries{log="violations"} 3',
    'runtime_enforcer_queue_depth{queue="journal"} 4',
    'runtime_enforcer_queue_depth{queue="export"} 6',
    'runtime_enforcer_journal_bytes 1234',
    'runtime_enforcer_export_records_total 7',
    'runtime_enforcer_export_occurrences_total 70',
    'runtime_enforcer_export_failures_total 1',
    'runtime_enforcer_export_lost_records_total{reason="queue_full"} 8',
    'runtime_enforcer_export_lost_occurrences_total{reason="queue_full"} 80',
    'runtime_enforcer_policies{state="ready"} 2',
    'runtime_enforcer_containers{state="enforced"} 1',
    'runtime_enforcer_override_info{override="none"} 1',
    'runtime_enforcer_nri_connected 1',
    'runtime_enforcer_attached 1',
  ]) {
    expect(text.split('\n')).toContain(line);
  }
  expect(text).toMatch(/^runtime_enforcer_build_info\{version="\d[^"]*",node="v\d[^"]*"\} 1$/m);
  expect(text).toMatch(/runtime_enforcer_event_loop_delay_seconds\{share="1"\} [\d.e-]+/);
});

it('does not add up kernel counters over scrapes, nor keep states that are gone', async () => {
  metrics = startMetrics();
  let states = new Map([['ready', 1]]);
  metrics.observe(source({ policies: () => states }));
  await metrics.text();
  states = new Map([['failed', 1]]);
  const text = await metrics.text();
  expect(text).toContain('outcome="denied"} 3\n');
  expect(text).toContain('runtime_enforcer_policies{state="failed"} 1');
  expect(text).not.toContain('state="ready"');
});

it('still renders the rest when the kernel cannot be read', async () => {
  metrics = startMetrics();
  metrics.observe(
    source({
      outcomes: () => Promise.reject(new Error('closed')),
      recursionMisses: () => {
        throw new Error('closed');
      },
    }),
  );
  await metrics.text();
  expect(await metrics.text()).toMatch(/runtime_enforcer_failures_total\{place="metrics"\} [2-4]/);
});

it('counts nothing for a count of nothing', () => {
  metrics = startMetrics();
  metrics.counters.add('events_learned', 0);
  metrics.counters.add('events_learned', -1);
  expect(metrics.counters.value('events_learned')).toBe(0);
});
