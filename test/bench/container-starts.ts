import { setTimeout as delay } from 'node:timers/promises';
import { printProgress } from '../vm/progress.ts';
import type { EchoControl } from './echo-control.ts';
import { median, percentile } from './figure.ts';
import type { HostAgent } from './host-agent.ts';
import type { HostContainer } from './host-containers.ts';

/** Records that the kernel is to tell meanwhile. */
export const EVENTS_PER_SECOND = 5_000;
/** A run that handled less of them than this part was no test of anything. */
const EVENTS_SHARE_MIN = 0.95;
const RUNS = 3;
const STARTS_PER_RUN = 1_000;
/** Between two starts; a runtime that creates pods as fast as it can is slower. */
const PAUSE_MS = 3;
const WARM_UP_STARTS = 200;
/** On a machine that has time for this bench, an echo between two processes takes a tenth of it. */
const ECHO_P99_MAX_MS = 1;

type StartedAgent = Pick<HostAgent, 'plugin' | 'metric'>;

/** How long the agent took to answer, in milliseconds, and what else it did. */
export interface MeasuredStarts {
  readonly p50: number;
  readonly p99: number;
  /** The same of a process that does nothing but answer: what the machine adds. */
  readonly echoP99: number;
  readonly eventsPerSecond: number;
}

/**
 * Starts and removes containers over and over while the kernel tells of new execs all the time.
 *
 * @param onRun called when a run begins
 * @throws Error if the agent did not keep up with the execs
 */
export async function measureStarts(
  agent: StartedAgent,
  control: EchoControl,
  starting: readonly HostContainer[],
  onRun: () => void = () => undefined,
): Promise<MeasuredStarts> {
  const echoes: number[] = [];
  await startMany(agent, starting, WARM_UP_STARTS);
  const p50: number[] = [];
  const p99: number[] = [];
  const eventRates: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    onRun();
    const before = await handledEvents(agent);
    const start = performance.now();
    const times = await startMany(agent, starting, STARTS_PER_RUN, async () => {
      echoes.push(await control.ask());
    });
    const seconds = (performance.now() - start) / 1_000;
    eventRates.push(((await handledEvents(agent)) - before) / seconds);
    p50.push(median(times));
    p99.push(percentile(times, 99));
  }
  const eventsPerSecond = Math.min(...eventRates);
  if (eventsPerSecond < EVENTS_PER_SECOND * EVENTS_SHARE_MIN)
    throw new Error(`only ${eventsPerSecond} records per second were handled, not ${EVENTS_PER_SECOND}`);
  return { p50: median(p50), p99: median(p99), echoP99: percentile(echoes, 99), eventsPerSecond };
}

async function startMany(
  { plugin }: StartedAgent,
  starting: readonly HostContainer[],
  count: number,
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<number[]> {
  const times: number[] = [];
  const removals = new Map<HostContainer, Promise<void>>();
  for (let i = 0; i < count; i++) {
    const next = starting[i % starting.length];
    if (next === undefined) throw new RangeError('no containers to start');
    await removals.get(next);
    const start = performance.now();
    await plugin.startContainer(next.pod, next.container);
    times.push(performance.now() - start);
    removals.set(next, plugin.removeContainer(next.pod, next.container));
    await delay(PAUSE_MS);
    await between();
  }
  await Promise.all(removals.values());
  return times;
}

async function handledEvents(agent: StartedAgent): Promise<number> {
  const learned = await agent.metric('runtime_enforcer_events_learned_total');
  return learned + (await agent.metric('runtime_enforcer_events_violation_total'));
}

/** Says so where times of this machine mean little. */
export function tellIfBusy(echoP99Ms: number): void {
  if (echoP99Ms <= ECHO_P99_MAX_MS) return;
  printProgress(
    `this machine is busy: a process that does nothing answers within ${echoP99Ms.toFixed(1)} ms only`,
  );
}
