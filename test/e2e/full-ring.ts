import type { RunRing } from '../rings/report.ts';
import { runWholeCluster } from './suite.ts';

/**
 * The long end-to-end ring: a forbidden program is tried all the time, and what may break breaks; then every kind of
 * workload and of container; then what the pages for users say.
 */
export const run: RunRing = async (report) => {
  await runWholeCluster('faults', report, 'newest');
  await runWholeCluster('workloads', report);
  return await runWholeCluster('quick-start', report);
};
