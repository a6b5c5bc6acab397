import { join } from 'node:path';
import { release } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { printProgress } from '../vm/progress.ts';
import { startEchoControl, type EchoControl } from './echo-control.ts';
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
/** On a machine that has time for this bench, an echo between two processes takes a tenth of it. */
const ECHO_P99_MAX_MS = 1;

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
      const control = await startEchoControl(directory);
      try {
        await measure(agent, control, made.containers.slice(RUNNING), report);
      } finally {
        await control.stop();
        await agent.stop();
      }
    });
  } finally {
    await made.remove();
  }
}

async function measure(
  agent: HostAgent,
  control: EchoControl,
  starting: readonly HostContainer[],
  report: (measured: Measured) => void,
): Promise<void> {
  const echoes: number[] = [];
  await startMany(agent, starting, WARM_UP_STARTS);
  const p50: number[] = [];
  const p99: number[] = [];
  const eventRates: number[] = [];
  for (let run = 0; run < RUNS; run++) {
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
  const rate = Math.min(...eventRates);
  if (rate < EVENTS_PER_SECOND * EVENTS_SHARE_MIN)
    throw new Error(`only ${rate} records per second were handled, not ${EVENTS_PER_SECOND}`);
  const echo = percentile(echoes, 99);
  report({ figure: 'nri.echo_p99_ms', value: echo, unit: 'ms', kernel: release() });
  if (echo > ECHO_P99_MAX_MS)
    printProgress(
      `this machine is busy: a process that does nothing answers within ${echo.toFixed(1)} ms only`,
    );
  report({ figure: 'nri.start_p50_ms', value: median(p50), unit: 'ms', kernel: release() });
  report({ figure: 'nri.start_p99_ms', value: median(p99), unit: 'ms', kernel: release() });
  report({ figure: 'nri.events_per_second', value: rate, unit: '1/s', kernel: release() });
}

async function startMany(
  { plugin }: HostAgent,
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

async function handledEvents(agent: HostAgent): Promise<number> {
  const learned = await agent.metric('runtime_enforcer_events_learned_total');
  return learned + (await agent.metric('runtime_enforcer_events_violation_total'));
}
