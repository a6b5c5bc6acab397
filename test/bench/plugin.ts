import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { API_VERSION } from '@runtime-enforcer/api/keys';
import { yamlText } from '@runtime-enforcer/api/yaml-text';
import type { ApiClient } from '@runtime-enforcer/kube/api-client';
import { startControlPlane } from '../cluster/control-plane.ts';
import { installCustomResources } from '../cluster/custom-resources.ts';
import { PLUGIN_DIRECTORY, setup } from '../kubectl/package-plugin.ts';
import { adminConfig } from '../kubectl/plugin-runner.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Measured } from './figure.ts';

const RUNS = 10;
const FEW = 20;
const MANY = 10_000;
const WRITERS = 16;
const MEBIBYTE = 1_048_576;
const PLUGIN = join(PLUGIN_DIRECTORY, 'kubectl-runtime_enforcer');

/** How long the packaged plugin takes, by the clock, against an API server of this machine: medians of ten runs. */
export async function benchPlugin(report: (measured: Measured) => void): Promise<void> {
  await setup();
  const kernel = release();
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-bench-'));
  const plane = await startControlPlane();
  try {
    const { client } = plane.admin;
    await installCustomResources(client);
    await createPolicies(client, 'few', FEW);
    await createPolicies(client, 'many', MANY);
    const kubeconfig = join(directory, 'config');
    await writeFile(kubeconfig, yamlText({ apiVersion: 'v1', kind: 'Config', ...adminConfig(plane, 'few') }));
    const tell = (figure: string, value: number, unit: string) =>
      report({ figure: `plugin.${figure}`, value: Math.round(value * 100) / 100, unit, kernel });
    const timed = async (...args: readonly string[]) => await median(args, kubeconfig);
    tell('help_ms', await timed('--help'), 'ms');
    tell('list_ms', await timed('policy', 'list'), 'ms');
    tell('complete_ms', await timed('__complete', 'policy', 'show', ''), 'ms');
    tell('list_10000_s', (await timed('policy', 'list', '-n', 'many')) / 1_000, 's');
    tell('size_mib', (await stat(PLUGIN)).size / MEBIBYTE, 'MiB');
  } finally {
    await plane.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Milliseconds; the first run, which reads the file from the disk, does not count. */
async function median(args: readonly string[], kubeconfig: string): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run <= RUNS; run++) {
    const start = performance.now();
    await runHostCommand([PLUGIN, ...args], { env: { KUBECONFIG: kubeconfig } });
    if (run > 0) times.push(performance.now() - start);
    await nextTurn();
  }
  times.sort((one, other) => one - other);
  return ((times[RUNS / 2 - 1] ?? Number.NaN) + (times[RUNS / 2] ?? Number.NaN)) / 2;
}

async function createPolicies(client: ApiClient, namespace: string, count: number): Promise<void> {
  await client.request({
    method: 'POST',
    path: '/api/v1/namespaces',
    body: { metadata: { name: namespace } },
  });
  const path = `/apis/${API_VERSION}/namespaces/${namespace}/workloadpolicies`;
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < count) {
      const body = {
        apiVersion: API_VERSION,
        kind: 'WorkloadPolicy',
        metadata: { name: `policy-${next++}` },
        spec: {
          mode: 'monitor',
          rulesByContainer: { app: { executables: { allowed: ['/bin/a', '/bin/b'] } } },
        },
      };
      await client.request({ method: 'POST', path, body });
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}
