import { join } from 'node:path';
import { etcdBinaries } from '../cluster/etcd-binary.ts';
import { kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import type { RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { krewValidator } from './krew-validator.ts';
import { kubectlDirectory } from './kubectl-binary.ts';

/** The kubectl ring: the packaged plugin, run by a real kubectl against a real API server. */
export const run: RunRing = async (report) => {
  // Built here, where a person sees that it takes minutes, and not within the time of a test.
  await etcdBinaries(printProgress);
  await kubernetesBinary('kube-apiserver', printProgress);
  await kubectlDirectory(printProgress);
  await krewValidator(printProgress);
  return await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
};
