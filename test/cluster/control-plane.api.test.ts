import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CoreV1Api } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { NODE_BINARY } from '../vm/repository.ts';
import { startControlPlane } from './control-plane.ts';
import { testedKubernetesVersion } from './kubernetes-binary.ts';

const READY_BUDGET_MS = 20_000;

/** The processes of this machine whose command line names a text. */
async function processesNaming(text: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name));
  const lines = await Promise.all(
    pids.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const),
  );
  return lines
    .filter(([pid, line]) => line.includes(text) && pid !== String(process.pid))
    .map(([pid]) => pid);
}

const runDirectories = async (pid: number): Promise<string[]> =>
  (await readdir(tmpdir())).filter((name) => name.includes(`-${pid}-`));

describe('startControlPlane', () => {
  it('is ready in time, checks what clients may do, and leaves nothing', async () => {
    const start = performance.now();
    const plane = await startControlPlane();
    expect(performance.now() - start).toBeLessThan(READY_BUDGET_MS);
    const before = await runDirectories(process.pid);
    expect(before).toHaveLength(1);
    try {
      const version = await plane.admin.client.request({ path: '/version' });
      expect(version).toMatchObject({ gitVersion: `v${testedKubernetesVersion()}` });
      const nobody = await plane.serviceAccount('a', 'nobody');
      await expect(nobody.client.request({ path: '/api/v1/namespaces/a/pods' })).rejects.toThrow('403');
      const reader = await plane.serviceAccount('a', 'reader', {
        rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }],
      });
      const pods = await reader.config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace: 'a' });
      expect(pods.items).toEqual([]);
      await expect(reader.client.request({ path: '/api/v1/pods' })).rejects.toThrow('403');
      const everywhere = await plane.serviceAccount('a', 'everywhere', {
        clusterRules: [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }],
      });
      expect(await everywhere.client.request({ path: '/api/v1/pods' })).toMatchObject({ kind: 'PodList' });
      await expect(everywhere.client.request({ path: '/api/v1/nodes' })).rejects.toThrow('403');
      await plane.startControllers();
      expect(await processesNaming(before.join())).toHaveLength(4);
    } finally {
      await plane.stop();
    }
    expect(await runDirectories(process.pid)).toEqual([]);
    expect(await processesNaming(before.join())).toEqual([]);
  }, 60_000);

  it('is gone when the process that started it is killed', async () => {
    const module = join(import.meta.dirname, 'control-plane.ts');
    const script = `const { startControlPlane } = await import(${JSON.stringify(module)});
      const plane = await startControlPlane();
      await plane.startControllers();
      console.log(plane.apiServer.pid);`;
    const child = spawn(NODE_BINARY, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const name = (await runDirectories(child.pid ?? 0)).join();
    expect(await processesNaming(name)).toHaveLength(4);
    child.kill('SIGKILL');
    await eventually('all servers gone', async () =>
      (await processesNaming(name)).length === 0 ? true : undefined,
    );
  }, 60_000);

  it('tells why it did not start, and leaves nothing', async () => {
    await expect(startControlPlane({ apiServerArguments: ['--no-such-flag'] })).rejects.toThrow(
      'no-such-flag',
    );
    expect(await runDirectories(process.pid)).toEqual([]);
  }, 60_000);
});
