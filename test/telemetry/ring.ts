import { join } from 'node:path';
import type { RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { collectorBinary } from './collector-binary.ts';
import { promtoolBinary } from './promtool-binary.ts';

/** The telemetry ring: what leaves the programs, against a real OpenTelemetry Collector and Prometheus' own checks. */
export const run: RunRing = async (report) => {
  // Built here, where a person sees that it takes minutes, and not within the time of a test.
  await collectorBinary(printProgress);
  await promtoolBinary(printProgress);
  return await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
};
