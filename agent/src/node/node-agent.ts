import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import type { RunOptions } from '../commands/run-options.ts';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ExecEvent } from '../kernel/enforcer.ts';
import type { Learner } from '../learning/learner.ts';
import type { AgentMetrics } from '../metrics.ts';
import { createNriPlugin } from '../nri/plugin.ts';
import { AGENT_VERSION } from '../version.ts';
import type { ViolationJournal } from '../violations/violation-journal.ts';
import type { AgentStatus } from './agent-status.ts';
import { createEnforcementWatch } from './enforcement-watch.ts';
import type { KernelSide } from './kernel-side.ts';
import { createLateContainers } from './late-containers.ts';
import { createPeriodicReading } from './periodic-reading.ts';
import { createPolicyEffect, type PolicyEffect } from './policy-effect.ts';
import { createRuntimeHandlers, type ContainerNotices } from './runtime-handlers.ts';

const PLUGIN_NAME = 'runtime-enforcer-agent';

/** What an agent does on its node, wherever its policies come from. */
export interface NodeAgent {
  /** Where policies come in. */
  readonly effect: PolicyEffect;
  /** Adds the node's metrics. To be called once. */
  observe(): void;
  /** Answers the container runtime; resolves when its containers are bound. Rejects if it cannot be reached. */
  start(): Promise<void>;
  /** Asks the runtime for everything that it knows, and makes the kernel agree with it. */
  resynchronize(): Promise<void>;
  /** Stops everything but the kernel side; what waits has been handed to journal and learner then. */
  stop(): Promise<void>;
  /** Whether the runtime's containers have been bound and it asks us now. */
  readonly synchronized: boolean;
  /** Whether the program is still there. */
  readonly attached: boolean;
  status(): Promise<AgentStatus>;
}

export interface NodeAgentParts {
  readonly options: RunOptions;
  readonly kernel: KernelSide;
  readonly journal: ViolationJournal;
  /** Undefined: nothing is learned. */
  readonly learner: Learner | undefined;
  /** The version of a policy that was taken last. */
  readonly policy: (namespacedName: string) => WorkloadPolicy | undefined;
  /** Told what happens to containers. */
  readonly notices?: ContainerNotices;
  /** Where policies come later than the runtime: new maps that replace others take no effect before. */
  readonly policiesKnown?: Promise<void>;
  /** Brings a policy up to date that is on its way into the kernel. */
  readonly policyOnItsWay?: (namespacedName: string) => Promise<void>;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

export function createNodeAgent(parts: NodeAgentParts): NodeAgent {
  const { options, kernel, journal, learner, policy, notices = {}, log, metrics } = parts;
  const { policiesKnown, policyOnItsWay } = parts;
  const { enforcer, table, binder } = kernel;
  const { counters, failures } = metrics;
  const { nodeName } = options;
  const startedAt = new Date().toISOString();

  const late = createLateContainers({
    ...{ binder, journal, learner, policy, log, counters, failures },
    pathBytesMax: enforcer.attachment.pathBytesMax,
  });
  const onBoundLate = (container: BoundContainer): void => {
    notices.boundLate?.(container);
    late.look(container);
  };

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
  /** Lets the kernel decide by what it was given, and begins to read what it tells. */
  const takeEffect = async (): Promise<void> => {
    await enforcer.commit();
    if (following) return;
    following = true;
    enforcer.startEvents(lookup, onEvents);
    reading.start();
    watch.start();
  };
  const plugin = createNriPlugin({
    socketPath: options.nriSocketPath,
    pluginName: PLUGIN_NAME,
    pluginIndex: options.nriPluginIndex,
    failOpen: options.failOpen,
    log,
    counters: metrics.nri,
    handlers: createRuntimeHandlers({
      ...{ binder, log, counters, notices },
      ...(policyOnItsWay && { policyOnItsWay }),
      failOpen: options.failOpen,
      events: {
        async onReconciled() {
          if (!enforcer.pending || policiesKnown === undefined) {
            await takeEffect();
            return;
          }
          log.info({}, 'what decides on this node stays until the policies are known');
          void policiesKnown.then(takeEffect).catch((error: unknown) => {
            failures('take_effect');
            log.error(
              { err: error },
              'the new program and maps cannot take effect; the old ones go on deciding',
            );
          });
        },
        onBoundLate,
        onRemove: (container) => reading.leave(container),
      },
    }),
  });

  return {
    effect: createPolicyEffect({ ...{ table, binder, log, counters }, onBoundLate }),
    observe() {
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
    },
    start: () => plugin.start(),
    resynchronize: () => plugin.resynchronize(),
    async stop() {
      await plugin.stop();
      await watch.stop();
      await late.settled();
      await reading.read();
      await reading.stop();
    },
    get synchronized() {
      return plugin.connected;
    },
    get attached() {
      return watch.attached;
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
          const { namespace, podName, containerName, containerId, state, policy: named, slot } = container;
          const violations = slot > 0 ? Number(enforcer.containerTotals(slot).violations) : 0;
          return {
            ...{ namespace, podName, containerName, containerId, state, violations },
            ...(named !== undefined && { policy: named }),
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
