import type { RunRing } from '../rings/report.ts';
import { runWholeCluster } from './suite.ts';

/** The ring of faults: a forbidden program is tried all the time, and what may break breaks. */
export const run: RunRing = async (report) => await runWholeCluster('faults', report);
