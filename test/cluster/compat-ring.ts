import { join } from 'node:path';
import { foreignResources } from '../chart/foreign-resources.ts';
import { helmBinary } from '../chart/helm-binary.ts';
import type { RingReport, RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { etcdBinaries } from './etcd-binary.ts';
import { KUBERNETES_VARIABLE, kubernetesBinary } from './kubernetes-binary.ts';

/** The oldest Kubernetes that the product supports, and one between it and the newest. */
const VERSIONS = ['1.31.14', '1.34.4'];

/**
 * What the product asks of an API server: its CRDs taken, judged and watched, the policies of admission, and all that the
 * chart makes.
 */
const TESTS: readonly (readonly string[])[] = [
  [
    configOf('cluster'),
    ...['custom-resources', 'admission', 'reflector'].map((name) => `/${name}.api.test.ts`),
  ],
  [configOf('chart'), '/installation.chart.test.ts'],
];

/** The compat ring: the tests of the API server that are about what it can do, on older ones. */
export const run: RunRing = async (report) => {
  await etcdBinaries(printProgress);
  await helmBinary(printProgress);
  await foreignResources(printProgress);
  for (const version of VERSIONS) {
    report.heading(`Kubernetes ${version}`);
    if (!(await isBuilt(version, report))) continue;
    for (const test of TESTS) await runVitestRing(report, test, { [KUBERNETES_VARIABLE]: version });
  }
  return report.result();
};

function configOf(directory: string): string {
  return `--config=${join(import.meta.dirname, '..', directory, 'vitest.config.ts')}`;
}

/** One version that cannot be built must not keep the others from being tested. */
async function isBuilt(version: string, report: RingReport): Promise<boolean> {
  const start = performance.now();
  try {
    await kubernetesBinary('kube-apiserver', printProgress, version);
    return true;
  } catch (error) {
    report.failed(`kube-apiserver ${version} is built`, performance.now() - start, String(error));
    return false;
  }
}
