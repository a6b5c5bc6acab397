import type { RunRing } from '../rings/report.ts';
import { runWholeCluster } from './suite.ts';

/** The end-to-end ring: the way of a first user, from the installation to the end. */
export const run: RunRing = async (report) => await runWholeCluster('walk-through', report);
