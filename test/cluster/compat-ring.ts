import { join } from 'node:path';
import type { RingReport, RunRing } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { printProgress } from '../vm/progress.ts';
import { etcdBinaries } from './etcd-binary.ts';
import { KUBERNETES_VARIABLE, kubernetesBinary } from './kubernetes-binary.ts';

/** The oldest Kubernetes that the product supports, and one between it and the newest. */
const VERSIONS = ['1.31.14', '1.34.4'];

/** What the product asks of an API server: its CRDs taken, judged and watched, and the policies of admission. */
const TESTS = ['custom-resources', 'admission', 'reflector'];

/** The compat ring: the tests of the API server that are about what it can do, on older ones. */
export const run: RunRing = async (report) => {
  await etcdBinaries(printProgress);
  const config = ['--config', join(import.meta.dirname, 'vitest.config.ts')];
  for (const version of VERSIONS) {
    report.heading(`Kubernetes ${version}`);
    if (!(await isBuilt(version, report))) continue;
    await runVitestRing(report, [...config, ...TESTS.map((name) => `/${name}.api.test.ts`)], {
      [KUBERNETES_VARIABLE]: version,
    });
  }
  return report.result();
};

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
