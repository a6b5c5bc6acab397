import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { helmBinary } from '../chart/helm-binary.ts';
import { CHART } from '../chart/render-chart.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { COLLECTOR_REPOSITORY, COLLECTOR_TAG } from './collector-image.ts';
import type { WholeCluster } from './whole-cluster.ts';

/** What the names of the product's images on the node begin with. */
export const IMAGE_REPOSITORY = 'test.local/runtime-enforcer';
export const RELEASE = 'runtime-enforcer';
export const NAMESPACE = 'runtime-enforcer';
export const AGENTS = 'runtime-enforcer-agent';
export const CONTROLLERS = 'runtime-enforcer-controller-manager';

const HELM_LIMIT = '5m';

/** What a test asks of the chart: our images, and the processor time that an emulated machine needs. */
const VALUES = {
  certificates: { mode: 'generated' },
  telemetry: {
    collectorStrategy: 'default',
    defaultCollector: {
      image: { repository: COLLECTOR_REPOSITORY, tag: COLLECTOR_TAG },
      resources: resources('128Mi'),
    },
  },
  agent: { image: imageOf('agent'), resources: resources('256Mi') },
  controller: {
    image: imageOf('controller'),
    resources: resources('256Mi'),
    // So that a test need not wait for half a minute.
    wpStatusUpdateInterval: '2s',
  },
};

function imageOf(program: string): object {
  return { repository: `${IMAGE_REPOSITORY}/${program}` };
}

function resources(memory: string): object {
  return { limits: { cpu: '2', memory }, requests: { cpu: '50m', memory } };
}

/** Runs helm as the cluster's administrator. @throws HostCommandError with what it said when it fails */
export async function helm(cluster: WholeCluster, ...args: readonly string[]): Promise<string> {
  const { directory } = cluster.user;
  const program = await helmBinary(printProgress);
  const env = { HOME: directory, KUBECONFIG: join(directory, 'config') };
  return await runHostCommand([program, '--namespace', NAMESPACE, ...args], { env });
}

/** Writes what a test asks of the chart. @returns the file */
export async function writeTestValues({ user }: WholeCluster): Promise<string> {
  return await writeValues(user.directory, 'test-values.json', VALUES);
}

/** `helm upgrade --install` of the chart, until all of it is ready. */
export async function install(cluster: WholeCluster, values: object = {}): Promise<void> {
  const files = [
    await writeTestValues(cluster),
    await writeValues(cluster.user.directory, 'more-values.json', values),
  ];
  const named = files.flatMap((file) => ['--values', file]);
  const wait = ['--create-namespace', '--wait', '--timeout', HELM_LIMIT];
  await helm(cluster, 'upgrade', '--install', RELEASE, CHART, ...named, ...wait);
}

async function writeValues(directory: string, name: string, values: object): Promise<string> {
  const file = join(directory, name);
  await writeFile(file, JSON.stringify(values));
  return file;
}
