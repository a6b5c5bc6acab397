import { join } from 'node:path';
import type { RunRing } from '../test/rings/report.ts';
import { runVitestRing } from '../test/rings/unit-ring.ts';

/** The images ring: what `npm run images` builds, taken apart and run. */
export const run: RunRing = async (report) =>
  await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
