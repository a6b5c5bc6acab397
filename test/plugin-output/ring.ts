import { runPluginTests } from '../kubectl/ring.ts';
import type { RunRing } from '../rings/report.ts';

/** The ring of what the plugin prints: as the document shows it, and nothing that acts on a terminal. */
export const run: RunRing = async (report) => await runPluginTests(report, import.meta.dirname);
