import { join } from 'node:path';
import { etcdBinaries } from '../cluster/etcd-binary.ts';
import { kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import type { RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { promtoolBinary } from '../telemetry/promtool-binary.ts';
import { printProgress } from '../vm/progress.ts';
import { foreignResources } from './foreign-resources.ts';
import { helmBinary } from './helm-binary.ts';

/** The chart ring: what helm makes of the chart, against the programs, a real API server and Prometheus' own checks. */
export const run: RunRing = async (report) => {
  // Built here, where a person sees that it takes minutes, and not within the time of a test.
  await helmBinary(printProgress);
  await promtoolBinary(printProgress);
  await etcdBinaries(printProgress);
  for (const program of ['kube-apiserver', 'kubectl'] as const)
    await kubernetesBinary(program, printProgress);
  await foreignResources(printProgress);
  return await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
};
