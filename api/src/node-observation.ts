import type { Observation } from './workload-policy-proposal.ts';

/**
 * What one node saw of one executable in one container of a workload, since learning of it began there: cumulative,
 * so a newer one of the same key replaces the older. Agents offer it; the controller alone writes it into the
 * proposal's status.
 */
export interface NodeObservation extends Observation {
  readonly namespace: string;
  /** Name of the proposal, in that namespace. */
  readonly proposal: string;
}
