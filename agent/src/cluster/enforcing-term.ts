import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import type { LogExport } from '@runtime-enforcer/telemetry/log-export';
import type { ClusterOptions } from '../commands/cluster-options.ts';
import { startStatusSocket, type RunContext } from '../commands/run-context.ts';
import type { FitNode } from '../node/kernel-side.ts';
import { releasedSentence, untilReleaseMark } from '../node/release-mark.ts';
import { openLogJournal } from '../violations/log-journal.ts';
import { asNodeViolation, type NodeViolation } from '../violations/node-violation.ts';
import { violationEvent } from '../violations/violation-export.ts';
import { createClusterAgent } from './cluster-agent.ts';
import type { OwnDaemonSet } from './daemon-set.ts';
import type { HealthSubjects } from './node-health.ts';
import type { NodeTerm } from './node-terms.ts';
import { serveObservers } from './serve-observers.ts';

/** How long each part of an orderly end may take, with the observers'. */
const AGENT_STOP_MS = 2_000;
const JOURNAL_STOP_MS = 500;
const KERNEL_STOP_MS = 2_000;
const SHOWN_STOP_MS = 100;
export const TERM_STOP_MS = 7_500;
/** How long the API server may take to say whether this agent will have a successor. */
const DAEMON_SET_ANSWER_MS = 1_000;

/** What an agent has whether or not it owns its node. */
export interface TermParts {
  readonly context: RunContext;
  readonly cluster: ClusterOptions;
  readonly client: ApiClient;
  /** Undefined: nothing is served by gRPC. */
  readonly certificates: CertificateStore | undefined;
  readonly exporter: LogExport | undefined;
  readonly daemonSet: OwnDaemonSet | undefined;
  readonly node: FitNode;
  readonly health: HealthSubjects;
  readonly journalDirectory: string;
}

/**
 * Enforces on the node for a term: takes over what the agent before has left in the kernel and in the journal, then
 * listens to the API server and the runtime. Resolves when somebody took enforcement off the node for good.
 */
export async function enforce(term: NodeTerm, parts: TermParts): Promise<void> {
  const { stops, signal } = term;
  const { context, cluster, client, certificates, exporter, daemonSet, node, health } = parts;
  const { options, log, metrics, termination } = context;

  health.released = undefined;
  const kernel = await node.open();
  stops.add('kernel', KERNEL_STOP_MS, async () => {
    const release = termination.aborted && (await isToRelease(term, context, daemonSet));
    await kernel.close({ release });
  });
  signal.throwIfAborted();
  const journal = await openJournal(parts);
  stops.add('journal', JOURNAL_STOP_MS, () => journal.stop(JOURNAL_STOP_MS));
  signal.throwIfAborted();
  const agent = createClusterAgent({
    ...{ options, cluster, client, kernel, violations: journal.log, health, log, metrics },
    onViolation: (violation, occurrences) => exporter?.emit(violationEvent(violation, occurrences)),
  });
  stops.add('agent', AGENT_STOP_MS, () => agent.stop());
  metrics.observeReports({
    ...{ logs: { violations: journal.log, observations: agent.observations }, journal },
    ...(exporter && { export: exporter }),
  });
  stops.add('what is shown', SHOWN_STOP_MS, () => {
    Object.assign(health, { node: undefined, policies: undefined });
    metrics.unobserve();
    return Promise.resolve();
  });
  await startStatusSocket(context, stops, () => agent.status());
  signal.throwIfAborted();
  const observers =
    certificates && (await serveObservers({ log, stops, metrics }, cluster, certificates, agent.sources));
  signal.throwIfAborted();
  metrics.setRole('owner');
  await agent.start();
  observers?.setServing(true);
  context.onReady();
  const mark = await untilReleaseMark('set', options.stateDirectory, signal);
  // Said from here on, not only once the next term has begun: until then the parts of this one come to their end.
  if (mark !== undefined) health.released = releasedSentence(mark);
}

/** Behind what the agent before has written. */
export async function openJournal({ context, journalDirectory }: TermParts) {
  const { log, metrics } = context;
  return await openLogJournal<NodeViolation>({
    ...{ directory: journalDirectory, name: 'violations', asValue: asNodeViolation, log },
    counters: metrics.counters,
  });
}

/** Whether nobody will come after this agent. Where that cannot be told, what is pinned stays. */
async function isToRelease(
  { isHandingOver }: NodeTerm,
  { options, log }: RunContext,
  daemonSet: OwnDaemonSet | undefined,
): Promise<boolean> {
  if (options.onExit === 'release' && !isHandingOver) return true;
  if (daemonSet === undefined) return false;
  const state = await daemonSet.state(AbortSignal.timeout(DAEMON_SET_ANSWER_MS));
  switch (state) {
    case 'present':
      return false;
    case 'deleted':
      log.warn({}, 'the DaemonSet of this agent is deleted: all enforcement is taken off this node');
      return true;
    case 'unknown':
      log.warn(
        {},
        'whether the DaemonSet of this agent is deleted is not known: enforcement stays on this node; ' +
          'if the product was uninstalled, run agent release there',
      );
      return false;
  }
}
