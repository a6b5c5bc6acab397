import { join } from 'node:path';
import { helmBinary } from '../chart/helm-binary.ts';
import { etcdBinaries } from '../cluster/etcd-binary.ts';
import { kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import type { RingReport, RingResult, RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { krewValidator } from './krew-validator.ts';
import { kubectlDirectory } from './kubectl-binary.ts';

const PROGRAMS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

/** The kubectl ring: the packaged plugin, run by a real kubectl against a real API server. */
export const run: RunRing = async (report) => await runPluginTests(report, import.meta.dirname);

/** Runs the tests of a directory that has a vitest.config.ts, once all is there that they need. */
export async function runPluginTests(report: RingReport, directory: string): Promise<RingResult> {
  // Built here, where a person sees that it takes minutes, and not within the time of a test.
  await etcdBinaries(printProgress);
  for (const program of PROGRAMS) await kubernetesBinary(program, printProgress);
  await kubectlDirectory(printProgress);
  await krewValidator(printProgress);
  await helmBinary(printProgress);
  return await runVitestRing(report, ['--config', join(directory, 'vitest.config.ts')]);
}
