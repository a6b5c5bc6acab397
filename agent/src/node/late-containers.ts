import { displayExecutable } from '@runtime-enforcer/api/executable-path';
import { decide } from '@runtime-enforcer/api/matcher';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ContainerBinder } from '../containers/container-binder.ts';
import type { RunningProgram } from '../containers/running-programs.ts';
import type { Learner } from '../learning/learner.ts';
import type { AgentCounters } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import type { ViolationJournal } from '../violations/violation-journal.ts';
import type { Occurrence } from '../violations/violation-records.ts';

/** Containers whose processes are read at the same time. */
const PARALLEL = 4;
/** Programs of one container that the log names. */
const MAX_PROGRAMS_TOLD = 20;

/** Looks at what already ran in containers when they were bound: reports it, or learns it. */
export interface LateContainers {
  /** Returns at once. */
  look(container: BoundContainer): void;
  /** Resolves when everything has been looked at. */
  settled(): Promise<void>;
}

export function createLateContainers(parts: {
  binder: Pick<ContainerBinder, 'running'>;
  policy: (namespacedName: string) => WorkloadPolicy | undefined;
  journal: Pick<ViolationJournal, 'found'>;
  learner: Pick<Learner, 'running'> | undefined;
  log: Logger;
  counters: AgentCounters;
  failures: (place: string) => void;
  pathBytesMax: number;
}): LateContainers {
  const { binder, policy, journal, learner, log, counters, failures, pathBytesMax } = parts;
  const waiting: BoundContainer[] = [];
  const workers = new Set<Promise<void>>();

  const examine = async (container: BoundContainer): Promise<void> => {
    if (container.state === 'learning' && learner === undefined) return;
    const { programs, incomplete } = await binder.running(container);
    if (container.state === 'learning') {
      learner?.running(container, programs);
      if (incomplete) log.warn(describe(container), 'too many processes to learn them all');
      return;
    }
    const rules = container.policy === undefined ? undefined : policy(container.policy);
    const occurrences = rules === undefined ? [] : unlisted(container, programs, rules, pathBytesMax);
    counters.add('running_unlisted', occurrences.length);
    log.warn(
      {
        ...describe(container),
        unlisted: occurrences
          .slice(0, MAX_PROGRAMS_TOLD)
          .map(({ executablePath, pid }) => ({ executablePath, pid })),
        unlistedCount: occurrences.length,
        incomplete,
      },
      'bound a container that started without us',
    );
    journal.found(container, occurrences);
  };

  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await examine(next);
      } catch (error) {
        failures('running_programs');
        log.warn({ ...describe(next), err: error }, 'what runs in a container bound late could not be read');
      }
    }
  };

  return {
    look(container) {
      if (container.state !== 'enforced' && container.state !== 'learning') return;
      waiting.push(container);
      if (workers.size >= PARALLEL) return;
      const worker = Promise.resolve().then(work);
      workers.add(worker);
      void worker.finally(() => workers.delete(worker));
    },
    async settled() {
      while (workers.size > 0) await Promise.all(workers);
    },
  };
}

/** One occurrence for each program that the policy would not let start. Nothing was done about it: `monitor`. */
export function unlisted(
  container: BoundContainer,
  programs: readonly RunningProgram[],
  { spec }: WorkloadPolicy,
  pathBytesMax: number,
): Occurrence[] {
  const occurrences: Occurrence[] = [];
  const timeMs = Date.now();
  for (const { pid, path, kind, otherMountNamespace } of programs) {
    const mountNamespace = otherMountNamespace ? 'other' : 'own';
    const attempt = { container: container.containerName, path, kind, mountNamespace } as const;
    const decision = decide(spec, attempt, pathBytesMax);
    if (decision.outcome !== 'violation') continue;
    const executablePath = displayExecutable(path, kind);
    const { reason } = decision;
    occurrences.push({ executablePath, action: 'monitor', reason, origin: 'snapshot', pid, timeMs });
  }
  return occurrences;
}

function describe({ namespace, podName, containerName, containerId, policy }: BoundContainer) {
  return { namespace, podName, containerName, containerId, policy };
}
