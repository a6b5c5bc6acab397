import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Refusal } from './believed-entries.ts';

const MS_PER_SECOND = 1_000;
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What is being done right now, for gauges. */
export interface StatusGauges {
  readonly agents: Readonly<Record<string, number>>;
  /** Records in the status of each policy. */
  readonly activeViolations: Iterable<readonly [policy: string, count: number]>;
  readonly unstored: number;
  readonly oldestUnstoredMs: number;
  readonly waitingPolicies: number;
}

/** What the status loop tells about itself. */
export interface StatusMetrics {
  round(durationMs: number): void;
  write(kind: 'policy' | 'proposal', outcome: 'written' | 'unchanged' | 'failed', durationMs: number): void;
  merged(occurrences: number): void;
  refused(refusal: Refusal, entries: number): void;
}

/**
 * @param gauges of the loop that runs; undefined where this process does not lead
 */
export function statusMetrics(registry: Registry, gauges: () => StatusGauges | undefined): StatusMetrics {
  const registers = [registry];
  new Gauge({
    name: 'runtime_enforcer_controller_agents',
    help: 'Agents, by whether they report.',
    labelNames: ['state'],
    registers,
    collect() {
      this.reset();
      for (const [state, count] of Object.entries(gauges()?.agents ?? {})) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'runtime_enforcer_active_violations',
    help: 'Violations in the status of a policy that are neither acknowledged nor allowed by now.',
    labelNames: ['k8s_namespace_name', 'policy_name'],
    registers,
    collect() {
      this.reset();
      for (const [policy, count] of gauges()?.activeViolations ?? []) {
        const slash = policy.indexOf('/');
        const [namespace, name] = [policy.slice(0, slash), policy.slice(slash + 1)];
        this.set({ k8s_namespace_name: namespace, policy_name: name }, count);
      }
    },
  });
  const gauge = (name: string, help: string, valueOf: (now: StatusGauges) => number): void => {
    new Gauge({
      name: `runtime_enforcer_controller_${name}`,
      help,
      registers,
      collect() {
        const now = gauges();
        this.set(now === undefined ? 0 : valueOf(now));
      },
    });
  };
  gauge('unstored_entries', 'Entries of agents that are in no status yet.', ({ unstored }) => unstored);
  gauge(
    'oldest_unstored_entry_seconds',
    'How long the oldest of these has waited.',
    ({ oldestUnstoredMs }) => oldestUnstoredMs / MS_PER_SECOND,
  );
  gauge(
    'waiting_policies',
    'Policies whose status is to be looked at.',
    ({ waitingPolicies }) => waitingPolicies,
  );
  const rounds = new Histogram({
    name: 'runtime_enforcer_controller_status_round_duration_seconds',
    help: 'How long it took to look at all policies and proposals of which something changed.',
    buckets: SECONDS,
    registers,
  });
  const writes = new Counter({
    name: 'runtime_enforcer_controller_status_updates_total',
    help: 'Statuses that were looked at, by what became of it.',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const durations = new Histogram({
    name: 'runtime_enforcer_controller_status_update_duration_seconds',
    help: 'How long it took to write a status.',
    labelNames: ['kind'],
    buckets: SECONDS,
    registers,
  });
  const merged = new Counter({
    name: 'runtime_enforcer_controller_violations_merged_total',
    help: 'Violations that were added to the status of a policy.',
    registers,
  });
  const refused = new Counter({
    name: 'runtime_enforcer_controller_entries_refused_total',
    help: 'Entries of agents that were not believed or could not be stored, by reason.',
    labelNames: ['reason'],
    registers,
  });
  return {
    round: (durationMs) => rounds.observe(durationMs / MS_PER_SECOND),
    write(kind, outcome, durationMs) {
      writes.inc({ kind, outcome });
      if (outcome === 'written') durations.observe({ kind }, durationMs / MS_PER_SECOND);
    },
    merged: (occurrences) => merged.inc(occurrences),
    refused: (reason, entries) => refused.inc({ reason }, entries),
  };
}
