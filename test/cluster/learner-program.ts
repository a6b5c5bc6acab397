import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClusterLearner } from '@runtime-enforcer/agent/learning/cluster-learner';
import { parseLearningSelector } from '@runtime-enforcer/agent/learning/learning-selector';
import { createCumulativeLog } from '@runtime-enforcer/agent/violations/cumulative-log';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { apiClient } from '@runtime-enforcer/kube/api-client';
import { pooledConfig } from '@runtime-enforcer/kube/pooled-config';
import { tokenFileUser } from '@runtime-enforcer/kube/token-file';
import type { LearnerCommand, LearnerPlace, LearnerReport } from './learner-agent.ts';
import { syntheticContainer, syntheticExec } from './synthetic-exec.ts';

/**
 * The learning half of an agent as a process of its own: synthetic exec records come in as messages, everything else
 * is what an agent does.
 */
const place = JSON.parse(process.argv[2] ?? '') as LearnerPlace;
const BATCH_MS = 20;
const LOOP_RESOLUTION_MS = 5;

const counts: Record<string, number> = {};
const problems: string[] = [];
const note = (fields: object, message: string): void => {
  if (problems.length < 20)
    problems.push(
      `${message} ${JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? value.message : value))}`,
    );
};
const pool = pooledConfig((config) =>
  config.loadFromClusterAndUser(
    { name: 'test', server: place.server, caData: place.caData, skipTLSVerify: false },
    tokenFileUser('agent', place.tokenFile),
  ),
);
const observations = createCumulativeLog<NodeObservation>({ incarnation: place.nodeName });
const learner = createClusterLearner({
  client: apiClient(pool),
  nodeName: place.nodeName,
  selector: parseLearningSelector(place.selector) ?? [],
  isPromoted: () => false,
  observations,
  containers: () => [],
  readRunning: () => Promise.resolve([]),
  log: { debug: () => undefined, info: () => undefined, warn: note, error: note },
  counters: {
    add: (name, by = 1) => void (counts[name] = (counts[name] ?? 0) + by),
    value: (name) => counts[name] ?? 0,
  },
  timings: { writer: place.writer },
});

function report(loop: ReturnType<typeof monitorEventLoopDelay>): LearnerReport {
  return {
    ...{ counts, problems, state: learner.state(), observed: observations.size.keys },
    loopDelayMs: {
      p99: loop.percentile(99) / 1e6 - LOOP_RESOLUTION_MS,
      max: loop.max / 1e6 - LOOP_RESOLUTION_MS,
    },
    cpuMs: process.cpuUsage().user / 1_000,
  };
}

async function storm(execs: LearnerCommand['execs'], perSecond: number, ms: number): Promise<void> {
  const records = execs.map(({ path, ...pod }) => syntheticExec(syntheticContainer(pod), path));
  const end = performance.now() + ms;
  let next = 0;
  let due = 0;
  for (let last = performance.now(); last < end;) {
    await sleep(BATCH_MS);
    const now = performance.now();
    due += ((now - last) * perSecond) / 1_000;
    last = now;
    const batch = [];
    for (; due >= 1; due--) {
      const record = records[next++ % records.length];
      if (record !== undefined) batch.push(record);
    }
    learner.events(batch);
  }
}

async function obey({ execs, storm: given, stop }: LearnerCommand): Promise<void> {
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  if (given === undefined)
    learner.events(execs.map(({ path, ...pod }) => syntheticExec(syntheticContainer(pod), path)));
  else await storm(execs, given.perSecond, given.ms);
  if (stop) await learner.stop();
  loop.disable();
  process.send?.(report(loop));
  if (stop) {
    await pool.close();
    process.disconnect();
  }
}

process.on('message', (command) => void obey(command as LearnerCommand));
// Its parent is gone.
process.on('disconnect', () => process.exit());
await learner.start();
process.send?.('ready');
