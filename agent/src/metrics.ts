import { observeCertificateEnds } from '@runtime-enforcer/telemetry/certificate-metric';
import { observeLoopDelay } from '@runtime-enforcer/telemetry/loop-delay-metric';
import { Counter, Gauge, Registry } from 'prom-client';
import { nriCounters } from './nri-metrics.ts';
import type { NriCounters } from './nri/counters.ts';
import { observeReports, type ReportSource } from './report-metrics.ts';
import { observeServer, type ServerCounters } from './server-metrics.ts';
import { AGENT_VERSION } from './version.ts';

/** Everything that the agent counts by itself, and what a count means. */
const COUNTERS = {
  containers_refused: 'containers that were kept from starting because they could not be bound',
  containers_failed_open: 'containers that could not be bound and started because of NRI_FAILOPEN',
  containers_bound_late: 'containers that were bound after their start, because nobody was asked then',
  containers_repaired: 'containers whose place in the kernel was not as it was written, and is again',
  strays_removed: 'places in the kernel that no container accounted for, taken out',
  containers_unbindable: 'containers without a policy that could not be bound for learning',
  running_unlisted: 'programs found running in containers bound late that their policy does not list',
  policy_files_broken: 'readings of policy files that were refused',
  policy_files_unreadable: 'policy files, or their directory, that could not be read',
  policies_failed: 'policies that the kernel tables did not take',
  events_learned: 'learning records taken from the kernel',
  events_violation: 'violation records taken from the kernel',
  events_without_container: 'records whose container had ended and was not known any more',
  events_failed: 'records that could not be handled',
  learned_paths_refused: 'observed executables that no proposal took, full or not listable',
  learned_workloads_refused: 'observed containers whose workload can have no proposal',
  learned_paths_lost:
    'executables that were given up before they reached a proposal, with their workload or for room',
  learning_lookup_failures: 'attempts to read from the API what learning needs to know that failed',
  observations_refused: 'executables whose evidence is not offered, because the node has too many',
  proposal_writes: 'proposals written with new paths',
  proposal_failures: 'attempts to read or write a proposal that failed',
  violations_over_quota: 'distinct violations beyond the records of their container; counted, not named',
  violation_lines_written: 'violation lines handed to the file',
  violation_lines_dropped: 'violation lines that the file or its queue could not take',
  violation_lines_dropped_stdout: 'violation lines that the reader of standard output was too slow for',
  violation_write_errors: 'attempts to write the violations file that failed',
  journal_write_errors: 'attempts to write the journal that failed',
  journal_lines_broken: 'lines of the journal that could not be read back',
  journal_entries_forgotten:
    'journal entries of ended containers that were given up before anybody read them',
  journal_entries_not_kept:
    'journal entries that are in memory only, because the journal may not grow further',
  log_lines_dropped: 'log lines that the reader of standard error was too slow for',
  output_errors: 'errors of standard output and standard error',
  flush_failures: 'periodic readings of the kernel counters that failed',
} as const;

export type CounterName = keyof typeof COUNTERS;

/** Where something is dropped because there is no room for it, by the counter or the kernel's outcome that counts it. */
const DROPS: Readonly<Record<string, CounterName | { readonly outcome: string }>> = {
  learning_ring: { outcome: 'learning_ring_full' },
  violation_ring: { outcome: 'violation_ring_full' },
  violations_file: 'violation_lines_dropped',
  violations_output: 'violation_lines_dropped_stdout',
  journal: 'journal_entries_forgotten',
  log: 'log_lines_dropped',
};

/** Counts by name; never throws. */
export interface AgentCounters {
  add(name: CounterName, by?: number): void;
  value(name: CounterName): number;
}

/** What the metrics read at each scrape. */
export interface MetricsSource {
  outcomes(): Promise<Readonly<Record<string, bigint>>>;
  recursionMisses(): bigint;
  readonly attachment: Readonly<Record<'kind' | 'programs' | 'adopted' | 'kernel', string>>;
  readonly degraded: boolean;
  override(): string;
  /** How many, by state. */
  policies(): ReadonlyMap<string, number>;
  containers(): ReadonlyMap<string, number>;
  nriConnected(): boolean;
  /** False: somebody took the program off this node. */
  attached(): boolean;
}

export interface AgentMetrics {
  readonly counters: AgentCounters;
  readonly nri: NriCounters;
  /** Counts an error that was survived, by the place where it was. `place` is a constant of the program. */
  readonly failures: (place: string) => void;
  /** Says what this agent is on its node. */
  setRole(role: AgentRole): void;
  /** Adds the end of the certificate that controllers are shown; undefined while there is none. */
  observeCertificate(end: () => Date | undefined): void;
  /** Adds the metrics of a running enforcer, until {@link unobserve}. */
  observe(source: MetricsSource): void;
  /** Adds the metrics of what is kept and sent of violations, until {@link unobserve}. */
  observeReports(source: ReportSource): void;
  /** Adds the counts of the server of controllers and debuggers, until {@link unobserve}. */
  observeServer(counters: ServerCounters): void;
  /** Takes out what was added: another agent tells it from now on. */
  unobserve(): void;
  /** All metrics in Prometheus' text form. Never rejects: what cannot be read is left out. */
  text(): Promise<string>;
  readonly contentType: string;
  stop(): void;
}

/** `owner` enforces; `standby` waits for the end of another agent; `released`: somebody took enforcement off the node. */
const ROLES = ['starting', 'owner', 'standby', 'released'] as const;
export type AgentRole = (typeof ROLES)[number];

/** Makes the registry and starts measuring the event loop's delay. */
export function startMetrics(): AgentMetrics {
  const registry = new Registry();
  /** What only the agent that owns the node can tell. */
  const owned = new Registry();
  const registers = [registry];
  const own = new Map<CounterName, { metric: Counter; value: number }>();
  for (const [name, help] of Object.entries(COUNTERS) as [CounterName, string][]) {
    own.set(name, {
      metric: new Counter({ name: `runtime_enforcer_${name}_total`, help: sentence(help), registers }),
      value: 0,
    });
  }
  const failures = new Counter({
    name: 'runtime_enforcer_failures_total',
    help: 'Errors that the agent survived, by place.',
    labelNames: ['place'],
    registers,
  });
  new Gauge({
    name: 'runtime_enforcer_build_info',
    help: 'Version of the agent.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version: AGENT_VERSION, node: process.version }, 1);
  new Gauge({
    name: 'runtime_enforcer_resident_memory_bytes',
    help: 'Resident memory of the agent.',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  const role = new Gauge({
    name: 'runtime_enforcer_role',
    help: 'What the agent is on its node: 1 for that role, 0 for the others.',
    labelNames: ['role'],
    registers,
  });
  const setRole = (now: AgentRole): void => {
    for (const each of ROLES) role.set({ role: each }, each === now ? 1 : 0);
  };
  setRole('starting');
  const stopLoopDelay = observeLoopDelay(registry);

  return {
    counters: {
      add(name, by = 1) {
        const counter = own.get(name);
        if (counter === undefined || by <= 0) return;
        counter.value += by;
        counter.metric.inc(by);
      },
      value: (name) => own.get(name)?.value ?? 0,
    },
    nri: nriCounters(registry),
    failures: (place) => failures.inc({ place }),
    setRole,
    observeCertificate: (end) => observeCertificateEnds(registry, { grpc: end }),
    observeReports: (source) => observeReports(owned, source),
    observe(source) {
      const onFailure = (): void => failures.inc({ place: 'metrics' });
      observeEnforcer(owned, source, onFailure);
      observeDrops(owned, source, (name) => own.get(name)?.value ?? 0, onFailure);
    },
    observeServer: (counters) => observeServer(owned, counters),
    unobserve: () => owned.clear(),
    text: async () => `${await registry.metrics()}${await owned.metrics()}`,
    contentType: registry.contentType,
    stop: stopLoopDelay,
  };
}

function sentence(help: string): string {
  return `${help.charAt(0).toUpperCase()}${help.slice(1)}.`;
}

function observeDrops(
  registry: Registry,
  source: MetricsSource,
  count: (name: CounterName) => number,
  onFailure: () => void,
): void {
  new Counter({
    name: 'runtime_enforcer_drops_total',
    help: 'Records and lines for which there was no room, by place. What the kernel counts is counted all the same.',
    labelNames: ['place'],
    registers: [registry],
    async collect() {
      const outcomes = await source.outcomes().catch(onFailure);
      this.reset();
      for (const [place, by] of Object.entries(DROPS)) {
        if (typeof by === 'string') this.inc({ place }, count(by));
        else if (outcomes !== undefined) this.inc({ place }, Number(outcomes[by.outcome] ?? 0n));
      }
    },
  });
}

function observeEnforcer(registry: Registry, source: MetricsSource, onFailure: () => void): void {
  const registers = [registry];
  const name = (suffix: string): string => `runtime_enforcer_${suffix}`;
  const guarded = async (read: () => void | Promise<void>): Promise<void> => {
    try {
      await read();
    } catch {
      onFailure();
    }
  };
  new Counter({
    name: name('exec_outcomes_total'),
    help: 'What became of the execs that the kernel program saw, by outcome.',
    labelNames: ['outcome'],
    registers,
    collect() {
      return guarded(async () => {
        const outcomes = await source.outcomes();
        this.reset();
        for (const [outcome, count] of Object.entries(outcomes)) this.inc({ outcome }, Number(count));
      });
    },
  });
  new Counter({
    name: name('recursion_misses_total'),
    help: 'How often the kernel skipped the program; attached by fmod_ret, each may be an exec that passed.',
    registers,
    collect() {
      return guarded(() => {
        const misses = Number(source.recursionMisses());
        this.reset();
        this.inc(misses);
      });
    },
  });
  new Gauge({
    name: name('attachment_info'),
    help: 'How the program is attached.',
    labelNames: ['kind', 'programs', 'adopted', 'kernel'],
    registers,
  }).set({ ...source.attachment }, 1);
  new Gauge({
    name: name('degraded'),
    help: '1 where an exec can pass unchecked; agent status says why.',
    registers,
  }).set(source.degraded ? 1 : 0);
  new Gauge({
    name: name('override_info'),
    help: "What an operator put above every policy's mode.",
    labelNames: ['override'],
    registers,
    collect() {
      return guarded(() => {
        this.reset();
        this.set({ override: source.override() }, 1);
      });
    },
  });
  const byState = (suffix: string, help: string, read: () => ReadonlyMap<string, number>): void => {
    new Gauge({
      name: name(suffix),
      help,
      labelNames: ['state'],
      registers,
      collect() {
        return guarded(() => {
          const counts = read();
          this.reset();
          for (const [state, count] of counts) this.set({ state }, count);
        });
      },
    });
  };
  byState('policies', 'Policies, by what the kernel holds of them.', () => source.policies());
  byState('containers', 'Containers, by what becomes of their execs.', () => source.containers());
  new Gauge({
    name: name('nri_connected'),
    help: '1 while the container runtime asks before it starts a container.',
    registers,
    collect() {
      this.set(source.nriConnected() ? 1 : 0);
    },
  });
  new Gauge({
    name: name('attached'),
    help: '0 when the program was taken off this node while the agent runs.',
    registers,
    collect() {
      this.set(source.attached() ? 1 : 0);
    },
  });
}
