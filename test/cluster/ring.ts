import { join } from 'node:path';
import { helmBinary } from '../chart/helm-binary.ts';
import type { RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { etcdBinaries } from './etcd-binary.ts';
import { kubernetesBinary } from './kubernetes-binary.ts';

/** The programs of Kubernetes that the tests start. What they share is compiled once, for the first. */
const PROGRAMS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;

/** The api ring: everything that talks to Kubernetes, against a real control plane of this machine. */
export const run: RunRing = async (report) => {
  // Built here, where a person sees that it takes minutes, and not within the time of a test.
  await etcdBinaries(printProgress);
  await helmBinary(printProgress);
  for (const program of PROGRAMS) await kubernetesBinary(program, printProgress);
  return await runVitestRing(report, ['--config', join(import.meta.dirname, 'vitest.config.ts')]);
};
