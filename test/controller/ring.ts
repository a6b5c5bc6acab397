import { join } from 'node:path';
import { etcdBinaries } from '../cluster/etcd-binary.ts';
import { kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import type { RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { helmBinary } from '../chart/helm-binary.ts';
import { printProgress } from '../vm/progress.ts';

const PROGRAMS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

/** The controller ring: the controller's process, webhooks and admission policies against a real control plane. */
export const run: RunRing = async (report) => {
  // Built here, where a person sees that it takes minutes, and not within the time of a test.
  await etcdBinaries(printProgress);
  await helmBinary(printProgress);
  for (const program of PROGRAMS) await kubernetesBinary(program, printProgress);
  return await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
};
