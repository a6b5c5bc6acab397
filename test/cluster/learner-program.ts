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
const LOOP_TURN_MS = 5;

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

/**
 * Processor time of the loop's thread from one turn of a timer to the next: for so long nothing else had its turn. The
 * time by the clock would count what other processes of the machine take.
 */
function watchLoop(): () => LearnerReport['loopHeldMs'] {
  const held: number[] = [];
  let last = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    held.push((user + system) / 1_000);
  }, LOOP_TURN_MS);
  return () => {
    clearInterval(timer);
    held.sort((one, other) => one - other);
    return { p99: held[Math.floor(held.length * 0.99)] ?? 0, max: held.at(-1) ?? 0 };
  };
}

function report(loopHeldMs: LearnerReport['loopHeldMs']): LearnerReport {
  return {
    ...{ counts, problems, state: learner.state(), observed: observations.size.keys, loopHeldMs },
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
  const loopHeld = watchLoop();
  if (given === undefined)
    learner.events(execs.map(({ path, ...pod }) => syntheticExec(syntheticContainer(pod), path)));
  else await storm(execs, given.perSecond, given.ms);
  if (stop) await learner.stop();
  process.send?.(report(loopHeld()));
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
