import { join } from 'node:path';
import { release } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { median, percentile, type Measured } from './figure.ts';
import { inTemporaryDirectory, startHostAgent, type HostAgent } from './host-agent.ts';
import { createHostContainers, type HostContainer } from './host-containers.ts';
import { EVENTS_VARIABLE } from './host-kernel-side.ts';
import { writePolicyFiles } from './policy-files.ts';

const EVENTS_PER_SECOND = 5_000;
/** A run that handled less of them than this part was no test of anything. */
const EVENTS_SHARE_MIN = 0.95;
const POLICIES = 100;
/** Run all the time; the records are about them. Half of them are learned. */
const RUNNING = 32;
/** Are started and removed over and over. */
const STARTING = 16;
const RUNS = 3;
const STARTS_PER_RUN = 1_000;
/** Between two starts; a runtime that creates pods as fast as it can is slower. */
const PAUSE_MS = 3;
const WARM_UP_STARTS = 200;

/** How long the agent takes to answer StartContainer while the kernel tells of new execs all the time. */
export async function benchNri(report: (measured: Measured) => void): Promise<void> {
  const policies = Array.from({ length: RUNNING + STARTING }, (_, index) =>
    index % 2 === 0 ? `policy-${index % POLICIES}` : undefined,
  );
  const made = await createHostContainers(policies);
  try {
    await inTemporaryDirectory(async (directory) => {
      await writePolicyFiles(join(directory, 'policies'), POLICIES);
      const running = made.containers.slice(0, RUNNING);
      const agent = await startHostAgent({
        directory,
        pods: running.map(({ pod }) => pod),
        containers: running.map(({ container }) => ({ ...container, state: 'running' })),
        env: { [EVENTS_VARIABLE]: String(EVENTS_PER_SECOND) },
      });
      try {
        await measure(agent, made.containers.slice(RUNNING), report);
      } finally {
        await agent.stop();
      }
    });
  } finally {
    await made.remove();
  }
}

async function measure(
  agent: HostAgent,
  starting: readonly HostContainer[],
  report: (measured: Measured) => void,
): Promise<void> {
  await startMany(agent, starting, WARM_UP_STARTS);
  const p50: number[] = [];
  const p99: number[] = [];
  const eventRates: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const before = await handledEvents(agent);
    const start = performance.now();
    const times = await startMany(agent, starting, STARTS_PER_RUN);
    const seconds = (performance.now() - start) / 1_000;
    eventRates.push(((await handledEvents(agent)) - before) / seconds);
    p50.push(median(times));
    p99.push(percentile(times, 99));
  }
  const rate = Math.min(...eventRates);
  if (rate < EVENTS_PER_SECOND * EVENTS_SHARE_MIN)
    throw new Error(`only ${rate} records per second were handled, not ${EVENTS_PER_SECOND}`);
  report({ figure: 'nri.start_p50_ms', value: median(p50), unit: 'ms', kernel: release() });
  report({ figure: 'nri.start_p99_ms', value: median(p99), unit: 'ms', kernel: release() });
  report({ figure: 'nri.events_per_second', value: rate, unit: '1/s', kernel: release() });
}

async function startMany(
  { plugin }: HostAgent,
  starting: readonly HostContainer[],
  count: number,
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
  }
  await Promise.all(removals.values());
  return times;
}

async function handledEvents(agent: HostAgent): Promise<number> {
  const learned = await agent.metric('runtime_enforcer_events_learned_total');
  return learned + (await agent.metric('runtime_enforcer_events_violation_total'));
}
