import type { RunRing } from '../rings/report.ts';
import { runWholeCluster } from './suite.ts';

/**
 * The end-to-end ring: the way of a first user, from the installation to the end; then what doctor and the debugger find
 * on a node, and the repairs that are commands of the agent.
 */
export const run: RunRing = async (report) => {
  await runWholeCluster('walk-through', report);
  return await runWholeCluster('doctor', report);
};
