/** One measured value, as it is printed. */
export interface Figure {
  readonly figure: string;
  readonly value: number;
  readonly unit: string;
  /** Release of the kernel that it was measured on. */
  readonly kernel: string;
  /** Of this repository; with a `+` where files differ from it. */
  readonly commit: string;
}

/** What a bench hands over; the kernel is the one it measured on. */
export type Measured = Pick<Figure, 'figure' | 'value' | 'unit' | 'kernel'>;

/** What is asked of a figure. */
export interface Bar {
  readonly must: number;
  readonly goal?: number;
  /** Whether the value may at most, or must at least, be that. */
  readonly bound: 'at most' | 'at least';
}

const BARS: Readonly<Record<string, Bar>> = {
  'exec.allowed.3': { bound: 'at most', must: 1_250, goal: 900 },
  'exec.allowed.8': { bound: 'at most', must: 1_800, goal: 1_300 },
  'exec.untracked': { bound: 'at most', must: 250, goal: 150 },
  'scale.growth_percent': { bound: 'at most', must: 5 },
  'load.policies_per_second': { bound: 'at least', must: 1_000, goal: 3_500 },
  'memory.per_policy_bytes': { bound: 'at most', must: 16 * 1024, goal: 8 * 1024 },
  'memory.fixed_bytes': { bound: 'at most', must: 8 * 1024 * 1024, goal: 4 * 1024 * 1024 },
  'nri.start_p99_ms': { bound: 'at most', must: 5, goal: 2 },
  'agent.edit_to_enforced_p99_ms': { bound: 'at most', must: 250, goal: 100 },
  'agent.nri_start_p99_ms': { bound: 'at most', must: 5, goal: 2 },
  'agent.requests_per_minute_idle': { bound: 'at most', must: 10 },
  'agent.requests_per_minute_learning': { bound: 'at most', must: 120 },
  'agent.rss_idle_mib': { bound: 'at most', must: 120, goal: 90 },
  'agent.cgroup_1000_policies_mib': { bound: 'at most', must: 200, goal: 160 },
  'agent.cgroup_10000_policies_mib': { bound: 'at most', must: 400, goal: 300 },
  'agent.ready_10000_policies_s': { bound: 'at most', must: 15, goal: 5 },
  'agent.journal_records_per_second': { bound: 'at least', must: 20_000 },
  'agent.journal_recover_1m_s': { bound: 'at most', must: 10 },
  'controller.status_settle_s': { bound: 'at most', must: 10, goal: 5 },
  'controller.rss_mib': { bound: 'at most', must: 350, goal: 250 },
  'controller.promote_p99_ms': { bound: 'at most', must: 1_000, goal: 200 },
  'controller.violation_to_status_p99_ms': { bound: 'at most', must: 3_000, goal: 1_500 },
  'controller.idle_writes_per_minute': { bound: 'at most', must: 0 },
  'controller.storm_writes_per_minute': { bound: 'at most', must: 600 },
  'plugin.help_ms': { bound: 'at most', must: 250, goal: 100 },
  'plugin.list_ms': { bound: 'at most', must: 500, goal: 250 },
  'plugin.complete_ms': { bound: 'at most', must: 400, goal: 200 },
  'plugin.list_10000_s': { bound: 'at most', must: 3, goal: 1.5 },
  'rss.idle_mib': { bound: 'at most', must: 110, goal: 80 },
  'rss.policies_10000_mib': { bound: 'at most', must: 250, goal: 180 },
};

/** How a figure stands against what is asked of it; undefined where nothing is. */
export interface Judgement {
  readonly bar: Bar;
  readonly meetsMust: boolean;
  readonly meetsGoal: boolean;
}

/** Compares a value with its bar. A value that is no finite number meets nothing. */
export function judge(figure: string, value: number): Judgement | undefined {
  const bar = BARS[figure];
  if (bar === undefined) return undefined;
  const meets = (limit: number): boolean =>
    Number.isFinite(value) && (bar.bound === 'at most' ? value <= limit : value >= limit);
  return { bar, meetsMust: meets(bar.must), meetsGoal: meets(bar.goal ?? bar.must) };
}

/** A figure as one line of JSON; values keep three digits behind the point, which no figure here needs more of. */
export function figureLine({ figure, value, unit, kernel, commit }: Figure): string {
  return JSON.stringify({ figure, value: Number(value.toFixed(3)), unit, kernel, commit });
}

/** The value that as many are below as above. Throws a RangeError for none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The smallest value that at least so many percent of all do not exceed (nearest rank). Throws a RangeError for none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('no values were measured');
  return value;
}
