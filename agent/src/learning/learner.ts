import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { formatFieldError } from '@runtime-enforcer/api/field-error';
import { POLICY_LABEL } from '@runtime-enforcer/api/keys';
import { proposalName } from '@runtime-enforcer/api/workload';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { RunningProgram } from '../containers/running-programs.ts';
import type { ExecEvent, RecordKey, SeenEntry } from '../kernel/enforcer.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import { PROPOSAL_EXTENSION, proposalFile, ProposalFileError } from './proposal-file.ts';
import { createWorkloadLearning, type Observed, type WorkloadLearning } from './workload-learning.ts';

/** New paths are written after this pause, so that a container's start is one writing. */
const WRITE_NEW_MS = 300;
/** Repeats alone are written so often. */
const WRITE_REPEATS_MS = 5_000;
/** After a writing that failed. */
const RETRY_MS = 5_000;
/** Proposals of a node: a tenant can make workloads without end, the disk has one. */
const MAX_PROPOSALS = 2_000;
/** Kernel counts that are followed, over all containers. */
const MAX_FOLLOWED = 50_000;

/** Turns what containers without a policy start into proposals on disk. */
export interface Learner {
  start(): Promise<void>;
  events(events: readonly ExecEvent[]): void;
  /** What already ran when learning of the container began. */
  running(container: BoundContainer, programs: readonly RunningProgram[]): void;
  /** Takes the counts of the kernel that changed. */
  counts(seen: readonly SeenEntry[]): void;
  /** Ends a reading: the containers that there are have been counted, the others have ended. */
  counted(presentIds: ReadonlySet<string>): void;
  /** Writes what waits. */
  stop(): Promise<void>;
}

interface Followed {
  readonly containerId: string;
  readonly learning: WorkloadLearning;
  readonly observed: Omit<Observed, 'count' | 'firstMs' | 'lastMs'>;
  count: bigint;
}

export function createLearner(options: {
  directory: string;
  nodeName: string;
  /** Whether the workload has its policy: one of the proposal's name, or made from it. */
  isPromoted: (namespace: string, proposalName: string) => boolean;
  log: Logger;
  counters: AgentCounters;
  /** Unix epoch, in milliseconds. */
  now?: () => number;
}): Learner {
  const { directory, nodeName, isPromoted, log, counters, now = Date.now } = options;
  const workloads = new Map<string, WorkloadLearning>();
  const followed = new Map<RecordKey, Followed>();
  /** Ids of containers that cannot be learned, which is told once. */
  const refused = new Set<string>();
  /** `namespace/name` of every proposal that there is. */
  const proposals = new Set<string>();
  let timer: { readonly handle: NodeJS.Timeout; readonly dueMs: number } | undefined;
  let writing: Promise<void> = Promise.resolve();
  let stopped = false;

  const schedule = (pauseMs: number): void => {
    const dueMs = performance.now() + pauseMs;
    if (stopped || (timer !== undefined && timer.dueMs <= dueMs)) return;
    clearTimeout(timer?.handle);
    const handle = setTimeout(() => {
      timer = undefined;
      writing = writing.then(writeAll);
    }, pauseMs);
    timer = { handle, dueMs };
  };

  const refuse = (container: BoundContainer, problem: string): void => {
    counters.add('learned_workloads_refused');
    const { containerId, namespace, podName, containerName } = container;
    if (refused.has(containerId)) return;
    refused.add(containerId);
    log.warn({ namespace, podName, containerName, problem }, 'container cannot be learned');
  };

  /** The learning that a container's execs belong to; undefined if they are not learned. */
  const learningOf = (container: BoundContainer): WorkloadLearning | undefined => {
    const { namespace, workload, labels } = container;
    if (labels.has(POLICY_LABEL)) return undefined;
    const name = proposalName(workload, 'accept');
    if (!name.ok) {
      refuse(container, name.errors.map(formatFieldError).join('; '));
      return undefined;
    }
    const key = `${namespace}/${name.value}`;
    const known = workloads.get(key);
    if (known !== undefined) return known;
    const file = proposalFile(directory, namespace, name.value);
    if (file === undefined) {
      refuse(container, 'its namespace or workload has no name that a file can have');
      return undefined;
    }
    if (!proposals.has(key) && proposals.size >= MAX_PROPOSALS) {
      refuse(container, `there are ${MAX_PROPOSALS} proposals; remove some from ${directory} and restart`);
      return undefined;
    }
    proposals.add(key);
    if (workload.truncated) {
      log.warn({ proposal: key, podName: container.podName }, 'the name of the workload was cut off');
    }
    const learning = createWorkloadLearning({ namespace, name: name.value, workload, nodeName, file });
    workloads.set(key, learning);
    return learning;
  };

  const observe = (learning: WorkloadLearning, observed: Observed, pauseMs: number): void => {
    if (learning.observe(observed)) schedule(pauseMs);
    else counters.add('learned_paths_refused');
  };

  const write = async (key: string, learning: WorkloadLearning): Promise<void> => {
    const [namespace = '', name = ''] = key.split('/');
    if (isPromoted(namespace, name)) {
      learning.discard();
      return;
    }
    try {
      const result = await learning.write();
      if (result.kind !== 'written') return;
      counters.add('proposal_writes');
      counters.add('learned_paths_refused', result.refused);
      if (result.added.length > 0) {
        log.info({ proposal: key, file: learning.file.path, added: result.added }, 'proposal has new paths');
      }
      if (result.refused > 0) {
        log.warn(
          { proposal: key, refused: result.refused },
          'executables were left out of a proposal: it is full, or no list can hold them',
        );
      }
    } catch (error) {
      counters.add('proposal_failures');
      log.error({ err: error, proposal: key }, 'proposal cannot be written; trying again');
      if (!(error instanceof ProposalFileError)) learning.discard();
      else schedule(RETRY_MS);
    }
  };

  const writeAll = async (): Promise<void> => {
    for (const [key, learning] of workloads) if (learning.waiting) await write(key, learning);
  };

  return {
    async start() {
      for (const entry of await readdir(directory, { withFileTypes: true })) {
        if (!entry.isDirectory()) continue;
        for (const file of await readdir(join(directory, entry.name)).catch(() => [])) {
          if (file.endsWith(PROPOSAL_EXTENSION)) {
            proposals.add(`${entry.name}/${file.slice(0, -PROPOSAL_EXTENSION.length)}`);
          }
        }
      }
    },
    events(events) {
      for (const event of events) {
        counters.add('events_learned');
        const { container, reason, key, timeMs, origin, path } = event;
        if (container === undefined) {
          counters.add('events_without_container');
          continue;
        }
        if (reason !== undefined && reason !== 'Unlisted') {
          counters.add('learned_paths_refused');
          continue;
        }
        const learning = learningOf(container);
        if (learning === undefined) continue;
        const { containerName, podName, containerId } = container;
        const observed = { containerName, podName, path, origin };
        observe(learning, { ...observed, count: 1n, firstMs: timeMs, lastMs: timeMs }, WRITE_NEW_MS);
        if (followed.size < MAX_FOLLOWED || followed.has(key)) {
          followed.set(key, { containerId, learning, observed, count: 1n });
        }
      }
    },
    running(container, programs) {
      const learning = learningOf(container);
      if (learning === undefined) return;
      const { containerName, podName } = container;
      const timeMs = now();
      for (const { path, kind, otherMountNamespace } of programs) {
        if (kind !== 'file' || otherMountNamespace) continue;
        const observed = { containerName, podName, path, origin: 'snapshot' } as const;
        observe(learning, { ...observed, count: 1n, firstMs: timeMs, lastMs: timeMs }, WRITE_NEW_MS);
      }
    },
    counts(seen) {
      for (const { key, count, firstMs, lastMs } of seen) {
        const known = followed.get(key);
        if (known === undefined || count === known.count) continue;
        const more = count > known.count ? count - known.count : count;
        known.count = count;
        observe(known.learning, { ...known.observed, count: more, firstMs, lastMs }, WRITE_REPEATS_MS);
      }
    },
    counted(presentIds) {
      for (const [key, { containerId }] of followed) if (!presentIds.has(containerId)) followed.delete(key);
      for (const containerId of refused) if (!presentIds.has(containerId)) refused.delete(containerId);
      const inUse = new Set([...followed.values()].map(({ learning }) => learning));
      for (const [key, learning] of workloads) {
        if (!learning.waiting && !inUse.has(learning)) workloads.delete(key);
      }
    },
    async stop() {
      stopped = true;
      clearTimeout(timer?.handle);
      writing = writing.then(writeAll);
      await writing;
    },
  };
}
