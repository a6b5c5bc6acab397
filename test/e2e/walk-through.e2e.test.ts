import { afterAll, beforeAll, expect, it } from 'vitest';
import { AGENTS, CONTROLLERS, install, NAMESPACE } from './installation.ts';
import { startWholeCluster, type WholeCluster } from './whole-cluster.ts';

let cluster: WholeCluster;

beforeAll(async () => {
  cluster = await startWholeCluster('shop');
});
afterAll(async () => {
  await cluster.stop();
});

/** Runs kubectl, which must succeed. */
async function kubectl(args: string): Promise<string> {
  const { code, stdout, stderr } = await cluster.user.kubectl(args.split(' '));
  if (code !== 0) expect.fail(`kubectl ${args}: code ${String(code)}: ${stderr}${stdout}`);
  return stdout;
}

it('is installed by helm', async () => {
  await install(cluster);
  await kubectl(`-n ${NAMESPACE} rollout status daemonset/${AGENTS} --timeout=60s`);
  await kubectl(`-n ${NAMESPACE} rollout status deployment/${CONTROLLERS} --timeout=60s`);
});
