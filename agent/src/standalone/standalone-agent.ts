import { PROMOTED_FROM_LABEL } from '@runtime-enforcer/api/keys';
import type { RunOptions } from '../commands/run-options.ts';
import type { ExecEvent } from '../kernel/enforcer.ts';
import { createLearner } from '../learning/learner.ts';
import type { AgentMetrics } from '../metrics.ts';
import type { Logger } from '../nri/handlers.ts';
import { createNriPlugin } from '../nri/plugin.ts';
import { AGENT_VERSION } from '../version.ts';
import type { LineFile } from '../violations/line-file.ts';
import { createViolationJournal } from '../violations/violation-journal.ts';
import type { JournalLine } from '../violations/violation-line.ts';
import type { AgentStatus } from '../node/agent-status.ts';
import { createEnforcementWatch } from '../node/enforcement-watch.ts';
import { createLateContainers } from '../node/late-containers.ts';
import type { KernelSide } from '../node/kernel-side.ts';
import { createPeriodicReading } from '../node/periodic-reading.ts';
import { createPolicyEffect } from '../node/policy-effect.ts';
import { createPolicyDirectory } from './policy-directory.ts';
import { createPolicyLoader } from './policy-loader.ts';
import { createPolicyParser } from './policy-parser.ts';
import { createPolicySet } from './policy-set.ts';
import { createRuntimeHandlers } from '../node/runtime-handlers.ts';

const PLUGIN_NAME = 'runtime-enforcer-agent';

export interface StandaloneAgent {
  /**
   * Loads the policies, then answers the container runtime; resolves when its containers are bound. Rejects with an
   * error that says what to do; what had been started is then to be stopped as usual.
   */
  start(): Promise<void>;
  /** Stops everything but the kernel side, and writes what waits. */
  stop(): Promise<void>;
  status(): Promise<AgentStatus>;
}

/** Puts the parts of an agent together that takes its policies from a directory. */
export function createStandaloneAgent(parts: {
  options: RunOptions;
  kernel: KernelSide;
  /** What was written of violations before, by an earlier agent. */
  recovered: readonly JournalLine[];
  file: LineFile | undefined;
  writeOut: (line: string) => boolean;
  log: Logger;
  metrics: AgentMetrics;
}): StandaloneAgent {
  const { options, kernel, recovered, file, writeOut, log, metrics } = parts;
  const { enforcer, table, binder } = kernel;
  const { counters, failures } = metrics;
  const { nodeName } = options;
  const startedAt = new Date().toISOString();
  const policies = createPolicySet();
  const parser = createPolicyParser();

  const journal = createViolationJournal({
    nodeName,
    write: (line) => {
      const text = JSON.stringify(line);
      if (!writeOut(`${text}\n`)) counters.add('violation_lines_dropped_stdout');
      file?.write(text);
    },
    log,
    counters,
  });
  journal.recover(recovered);

  const isPromoted = (namespace: string, name: string): boolean => {
    if (policies.policy(`${namespace}/${name}`) !== undefined) return true;
    for (const { metadata } of policies.policies()) {
      if (metadata.namespace === namespace && metadata.labels.get(PROMOTED_FROM_LABEL) === name) return true;
    }
    return false;
  };
  const learner =
    options.learnDirectory === undefined
      ? undefined
      : createLearner({ directory: options.learnDirectory, nodeName, isPromoted, log, counters });

  const late = createLateContainers({
    ...{ binder, journal, learner, log, counters, failures },
    policy: (name) => policies.policy(name),
    pathBytesMax: enforcer.attachment.pathBytesMax,
  });

  const directory =
    options.policyDirectory === undefined
      ? undefined
      : createPolicyDirectory({
          directory: options.policyDirectory,
          onChanges: (changes) => loader.load(changes),
          log,
          counters,
        });
  const loader = createPolicyLoader({
    ...{ parser, policies, log, counters },
    directory: options.policyDirectory ?? '',
    effect: createPolicyEffect({
      ...{ table, binder, log, counters },
      onBoundLate: (container) => late.look(container),
    }),
  });

  const lookup = (slot: number, generation: number) => binder.lookup(slot, generation);
  const reading = createPeriodicReading({
    containers: () => binder.containers(),
    total: (slot) => enforcer.containerTotals(slot).violations,
    seen: () => enforcer.seen(lookup),
    onContainer: (container, total, seen) => {
      journal.counts(container, total, seen);
      learner?.counts(seen);
    },
    onRead: (presentIds) => {
      journal.counted(presentIds);
      learner?.counted(presentIds);
    },
    onFailure: () => counters.add('flush_failures'),
    log,
  });

  const watch = createEnforcementWatch({ enforcer, log, failures });

  const onEvents = (events: readonly ExecEvent[]): void => {
    const learned = events.filter(({ kind }) => kind === 'learned');
    const violations = events.filter(({ kind }) => kind === 'violation');
    try {
      journal.events(violations);
      learner?.events(learned);
    } catch (error) {
      counters.add('events_failed', events.length);
      log.error({ err: error }, 'exec records could not be handled');
    }
  };

  let following = false;
  const plugin = createNriPlugin({
    socketPath: options.nriSocketPath,
    pluginName: PLUGIN_NAME,
    pluginIndex: options.nriPluginIndex,
    log,
    counters: metrics.nri,
    handlers: createRuntimeHandlers({
      ...{ binder, log, counters },
      failOpen: options.failOpen,
      events: {
        async onReconciled() {
          await enforcer.commit();
          if (following) return;
          following = true;
          enforcer.startEvents(lookup, onEvents);
          reading.start();
          watch.start();
        },
        onBoundLate: (container) => late.look(container),
        onRemove: (container) => reading.leave(container),
      },
    }),
  });

  return {
    async start() {
      await learner?.start();
      await directory?.start();
      table.complete();
      metrics.observe({
        outcomes: () => enforcer.outcomes(),
        recursionMisses: () => enforcer.recursionMisses(),
        attachment: {
          ...{ kind: enforcer.attachment.kind, adopted: enforcer.attachment.adopted },
          programs: enforcer.attachment.programs.join(','),
          kernel: enforcer.attachment.kernel,
        },
        degraded: enforcer.attachment.degraded !== undefined,
        override: () => enforcer.override(),
        policies: () => countStates(table.states().values(), ['ready', 'failed', 'retained']),
        containers: () => countStates(binder.containers(), ['enforced', 'learning', 'unbound', 'waiting']),
        nriConnected: () => plugin.connected,
        attached: () => watch.attached,
      });
      await plugin.start();
    },
    async stop() {
      await directory?.stop();
      await plugin.stop();
      await watch.stop();
      await late.settled();
      await reading.read();
      await reading.stop();
      await learner?.stop();
      await parser.stop();
    },
    async status() {
      const outcomes = await enforcer.outcomes();
      return {
        version: AGENT_VERSION,
        pid: process.pid,
        nodeName,
        startedAt,
        attachment: enforcer.attachment,
        attached: await enforcer.attached(),
        override: enforcer.override(),
        nriConnected: plugin.connected,
        outcomes: Object.fromEntries(Object.entries(outcomes).map(([name, count]) => [name, Number(count)])),
        recursionMisses: Number(enforcer.recursionMisses()),
        policies: [...table.states()].map(([name, state]) => ({ name, ...state })),
        containers: [...binder.containers()].map((container) => {
          const { namespace, podName, containerName, containerId, state, policy, slot } = container;
          const violations = slot > 0 ? Number(enforcer.containerTotals(slot).violations) : 0;
          return {
            ...{ namespace, podName, containerName, containerId, state, violations },
            ...(policy !== undefined && { policy }),
          };
        }),
      };
    },
  };
}

/** How many of each state; states that nothing is in are 0. */
function countStates<T extends string>(
  items: Iterable<{ readonly state: T }>,
  states: readonly T[],
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>(states.map((state) => [state, 0]));
  for (const { state } of items) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}
