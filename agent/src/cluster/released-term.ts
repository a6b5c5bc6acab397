import { randomUUID } from 'node:crypto';
import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import { releasedSentence, untilReleaseMark, type ReleaseMark } from '../node/release-mark.ts';
import { AGENT_VERSION } from '../version.ts';
import { createCumulativeLog } from '../violations/cumulative-log.ts';
import { openJournal, type TermParts } from './enforcing-term.ts';
import type { NodeTerm } from './node-terms.ts';
import { serveObservers } from './serve-observers.ts';

const JOURNAL_STOP_MS = 500;
const SHOWN_STOP_MS = 100;

/**
 * Owns the node and enforces nothing on it, for a term: somebody took enforcement off it. What was written of violations
 * can be read all the same. Resolves when the mark is gone.
 */
export async function waitReleased(term: NodeTerm, mark: ReleaseMark, parts: TermParts): Promise<void> {
  const { stops, signal } = term;
  const { context, cluster, certificates, health } = parts;
  const { options, log, metrics } = context;
  const sentence = releasedSentence(mark);
  log.error({}, sentence);
  health.released = sentence;
  metrics.setRole('released');
  stops.add('what is shown', SHOWN_STOP_MS, () => {
    metrics.unobserve();
    return Promise.resolve();
  });
  const journal = await openJournal(parts);
  stops.add('journal', JOURNAL_STOP_MS, () => journal.stop(JOURNAL_STOP_MS));
  const observations = createCumulativeLog<NodeObservation>({ incarnation: randomUUID() });
  metrics.observeReports({ ...{ logs: { violations: journal.log, observations }, journal } });
  signal.throwIfAborted();
  const startedAt = new Date().toISOString();
  const observers =
    certificates &&
    (await serveObservers({ log, stops, metrics }, cluster, certificates, {
      node: () => ({
        ...{ nodeName: options.nodeName, startedAt, agentVersion: AGENT_VERSION, kernel: '' },
        ...{ attached: false, attachment: '', degraded: sentence, override: 'none' },
        ...{ runtimeConnected: false, policiesLoaded: false },
      }),
      policies: () => new Map(),
      containers: () => [],
      ...{ violations: journal.log, observations },
    }));
  observers?.setServing(true);
  await untilReleaseMark('removed', options.stateDirectory, signal);
  log.info({}, 'enforcement on this node is resumed');
}
