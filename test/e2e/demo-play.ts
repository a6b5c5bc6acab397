import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter } from 'node:path';
import { narration } from '../demo/narration.ts';
import { pageSections, playSection } from './page-player.ts';
import { startWholeCluster } from './whole-cluster.ts';

const SHELL = '/bin/bash';
const INTERRUPTED_EXIT_CODE = 130;

/**
 * Plays the quick start on a cluster of its own, and tells it. Runs in a network namespace of its own; see
 * demo-cluster.ts.
 */
async function main(withShell: boolean): Promise<void> {
  const tell = narration((line) => process.stdout.write(`${line}\n`));
  const sections = await pageSections('quick-start.md');
  tell.step('A cluster: the control plane on this machine, a node with kubelet and containerd in a guest');
  const cluster = await startWholeCluster('shop');
  const interrupted = (): void => void cluster.stop().finally(() => process.exit(INTERRUPTED_EXIT_CODE));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupted);
  try {
    for (const section of sections.slice(0, -1)) await playSection(cluster, section, tell);
    if (withShell) {
      tell.say('A shell with kubectl, its plugin and helm on this cluster. `exit` ends everything.');
      await shell(await cluster.user.environment());
    }
    for (const section of sections.slice(-1)) await playSection(cluster, section, tell);
  } finally {
    await cluster.stop();
  }
  tell.say('Cluster, node and network are gone.');
}

async function shell(environment: Readonly<Record<string, string>>): Promise<void> {
  const path = [environment['PATH'], process.env['PATH']].join(delimiter);
  const env = { ...process.env, ...environment, PATH: path, PS1: 'demo $ ' };
  const child = spawn(SHELL, ['--norc', '-i'], { env, stdio: 'inherit' });
  await once(child, 'exit');
}

await main(!process.argv.includes('--no-shell'));
