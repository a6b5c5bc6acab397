import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hostArchitecture } from '../../images/architecture.ts';
import { buildImages } from '../../images/build.ts';
import { IMAGE_PROGRAMS } from '../../images/programs.ts';
import { helmBinary } from '../chart/helm-binary.ts';
import { etcdBinaries } from '../cluster/etcd-binary.ts';
import { type KubernetesProgram, kubernetesBinary } from '../cluster/kubernetes-binary.ts';
import { buildTestImages } from '../images/build.ts';
import { kubectlDirectory } from '../kubectl/kubectl-binary.ts';
import { setup as packagePlugin } from '../kubectl/package-plugin.ts';
import type { RingReport, RingResult } from '../rings/report.ts';
import { runVitestRing } from '../rings/unit-ring.ts';
import { diskAsset } from '../vm/assets-disk.ts';
import { kernelAsset } from '../vm/assets-kernel.ts';
import { qemuAsset } from '../vm/assets-qemu.ts';
import { printProgress } from '../vm/progress.ts';
import { runDirectory } from '../vm/run-directory.ts';
import { collectorImage } from './collector-image.ts';
import { containerdBinaries } from './containerd-binaries.ts';
import { IMAGE_REPOSITORY } from './installation.ts';
import { prometheusBinary } from './prometheus.ts';
import { NOTES_VARIABLE } from './notes.ts';
import { CONTAINERD_VARIABLE, DISK_VARIABLE } from './whole-cluster.ts';

const PROGRAMS: readonly KubernetesProgram[] = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
];
/** Once for all suites of a run. */
let preparing: ReturnType<typeof prepareWholeCluster> | undefined;
/** Removes its processes and devices with itself: the namespace lives as long as a process is in it. */
export const OWN_NETWORK = ['unshare', '--net'];

/**
 * Runs a test file against a whole cluster: a node with kubelet and containerd in a guest, the control plane on the
 * host, our images, the chart by helm, and kubectl with the packaged plugin as the user.
 *
 * @param name of the file here, without `.e2e.test.ts`
 * @param containerd `newest` also brings one that has a validator of plugins
 */
export async function runWholeCluster(
  name: string,
  report: RingReport,
  containerd: 'debian' | 'newest' = 'debian',
): Promise<RingResult> {
  const newest = containerd === 'newest' ? await containerdBinaries(printProgress) : undefined;
  preparing ??= prepareWholeCluster();
  const prepared = await preparing;
  const directory = await runDirectory();
  try {
    const notes = join(directory, 'notes');
    const config = ['--config', join(import.meta.dirname, 'vitest.config.ts')];
    const env = {
      ...{ ...prepared, [NOTES_VARIABLE]: notes },
      ...(newest !== undefined && { [CONTAINERD_VARIABLE]: newest }),
    };
    const result = await runVitestRing(report, [...config, `/${name}.e2e.test.ts`], env, OWN_NETWORK);
    const text = await readFile(notes, 'utf8').catch(() => '');
    for (const line of text.split('\n').filter((each) => each !== '')) report.note(line);
    return result;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * Makes all that needs the machine's network, or minutes: a cluster lives in a network of its own.
 *
 * @returns variables of the environment in which a cluster is started
 */
export async function prepareWholeCluster(): Promise<Readonly<Record<string, string>>> {
  await etcdBinaries(printProgress);
  for (const program of PROGRAMS) await kubernetesBinary(program, printProgress);
  await kubectlDirectory(printProgress);
  await helmBinary(printProgress);
  await qemuAsset(printProgress);
  await kernelAsset('6.12', printProgress);
  await prometheusBinary(printProgress);
  await packagePlugin();
  return { [DISK_VARIABLE]: await nodeDisk() };
}

/** A guest's disk with the images of the tests, of the product, and of the collector. */
async function nodeDisk(): Promise<string> {
  const directory = await runDirectory();
  try {
    const product = await buildImages(IMAGE_PROGRAMS, {
      architecture: hostArchitecture(),
      repository: IMAGE_REPOSITORY,
      directory,
    });
    const images = [...(await buildTestImages(printProgress)), await collectorImage(directory), ...product];
    return await diskAsset(images, printProgress, 'e2e-disk');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
