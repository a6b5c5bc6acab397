import { release } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { type LogJournal, openLogJournal } from '@runtime-enforcer/agent/violations/log-journal';
import {
  asNodeViolation,
  nodeViolationKey,
  type NodeViolation,
} from '@runtime-enforcer/agent/violations/node-violation';
import { printProgress } from '../vm/progress.ts';
import { inTemporaryDirectory } from './host-agent.ts';
import type { Measured } from './figure.ts';

const RECORDS = 1_000_000;
/** As many different ones as a full node can have: each is written again and again with a higher count. */
const CONTAINERS = 500;
const PER_CONTAINER = 100;
const DIFFERENT = CONTAINERS * PER_CONTAINER;
/** Records that come at once, as the kernel's ring hands them over. */
const BATCH = 500;
/** Fewer than there are different ones: a state that is still waiting when the next one comes is never written. */
const MAX_WAITING = DIFFERENT / 5;
/** All of them have to be on disk at once, which a node's journal does not allow. */
const MAX_BYTES = 4 * 1024 ** 3;

/** How fast violations get to disk, and how fast the next agent reads them back. */
export async function benchJournal(report: (measured: Measured) => void): Promise<void> {
  await inTemporaryDirectory(async (directory) => {
    const written = await open(directory);
    let start = performance.now();
    for (let index = 0; index < RECORDS; index++) {
      const violation = violationOf(index);
      written.log.put(nodeViolationKey(violation), violation);
      if (index % BATCH < BATCH - 1) continue;
      do await turn();
      while (written.waiting > MAX_WAITING);
    }
    await written.flush();
    const seconds = (performance.now() - start) / 1_000;
    const { bytes } = written;
    await written.stop(10_000);
    report(figure('agent.journal_records_per_second', RECORDS / seconds, 'records/s'));
    printProgress(`${Math.round(bytes / 1024 ** 2)} MiB for ${RECORDS} records`);

    const processor = process.cpuUsage();
    start = performance.now();
    const recovered = await open(directory);
    const recoverSeconds = (performance.now() - start) / 1_000;
    const { user, system } = process.cpuUsage(processor);
    // On a busy machine only this says how much work it is.
    printProgress(`reading back takes ${((user + system) / 1e6).toFixed(1)} s of processor time`);
    const { keys } = recovered.log.size;
    await recovered.stop(10_000);
    const { lines, broken } = recovered.recovered;
    if (keys !== DIFFERENT || lines < RECORDS || broken > 0) {
      throw new Error(`${keys} violations came back from ${lines} lines, of which ${broken} are broken`);
    }
    report(figure('agent.journal_recover_1m_s', recoverSeconds, 's'));
  });
}

async function open(directory: string): Promise<LogJournal<NodeViolation>> {
  const silent = (): void => undefined;
  return await openLogJournal<NodeViolation>({
    ...{ directory, name: 'violations', asValue: asNodeViolation, maxBytes: MAX_BYTES },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    counters: {
      add(name) {
        throw new Error(`the journal counts ${name}`);
      },
      value: () => 0,
    },
  });
}

function violationOf(index: number): NodeViolation {
  const container = Math.floor((index % DIFFERENT) / PER_CONTAINER);
  const observed = '2026-01-01T00:00:00.000Z';
  return {
    namespace: `team-${container % 50}`,
    podName: `service-${container}-5d8f7c9b6d-x2k9p`,
    containerName: 'main',
    containerId: String(container).padStart(64, '0'),
    nodeName: 'node-1',
    policyName: `deploy-service-${container}`,
    image: `images.example/team/service-${container}:1.4.2`,
    workloadKind: 'Deployment',
    workloadName: `service-${container}`,
    executablePath: `/usr/local/lib/service/bin/helper-${index % PER_CONTAINER}`,
    ...{ action: 'protect', reason: 'Unlisted', origin: 'exec', pid: 10_000 + (index % 20_000), uid: 1_000 },
    parentName: 'sh',
    occurrences: Math.floor(index / DIFFERENT) + 1,
    firstObservedTimestamp: observed,
    lastObservedTimestamp: observed,
  };
}

function figure(name: string, value: number, unit: string): Measured {
  return { figure: name, value, unit, kernel: release() };
}
