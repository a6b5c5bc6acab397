import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import { readCommand } from '@runtime-enforcer/agent/commands/command';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts';
import { createObject } from '../cluster/create-object.ts';
import { kubectlDirectory } from '../kubectl/kubectl-binary.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { installForeignResources } from './foreign-resources.ts';
import { type HelmRunner, helmRunner } from './helm-runner.ts';
import { renderChart } from './render-chart.ts';
import { type PodSpec, workloadOf } from './rendered-pods.ts';

const NAMESPACE = 'runtime-enforcer';
const DOCUMENTS = ['install', 'upgrade', 'uninstall', 'break-glass'] as const;

/** Commands of the text blocks of a page, without those that name something of the reader's own. */
async function commandsOf(page: (typeof DOCUMENTS)[number]): Promise<string[]> {
  const text = await readFile(join(REPOSITORY, `docs/${page}.md`), 'utf8');
  const blocks = Array.from(text.matchAll(/^ *```text\n(.*?)^ *```/gms), ([, block = '']) => block);
  return blocks
    .flatMap((block) => block.split('\n'))
    .map((line) => line.trim())
    .filter((line) => /^(helm|kubectl) /.test(line) && !/\b[A-Z]+-POD\b|check/.test(line));
}

let plane: ControlPlane;
let helm: HelmRunner;
let kubectl: string;
beforeAll(async () => {
  plane = await startControlPlane();
  await plane.serviceAccount(NAMESPACE, 'default');
  helm = await helmRunner(plane, NAMESPACE);
  kubectl = join(await kubectlDirectory(printProgress), 'kubectl');
  await installForeignResources(plane.admin.client, printProgress);
});
afterAll(async () => {
  await helm.stop();
  await plane.stop();
});

async function run(command: string): Promise<string> {
  const [program, ...args] = command.split(/\s+/);
  if (program === 'helm') return await helm.run(args);
  return await runHostCommand([kubectl, ...args], { env: { KUBECONFIG: helm.kubeconfig } });
}

describe('the commands of the documents', () => {
  it('do in their order what the documents say', { timeout: 180_000 }, async () => {
    const done: string[] = [];
    const each = async (commands: readonly string[]): Promise<void> => {
      for (const command of commands) {
        await run(command);
        done.push(command);
      }
    };
    const all = Object.fromEntries(
      await Promise.all(DOCUMENTS.map(async (page) => [page, await commandsOf(page)] as const)),
    );
    const [uninstall = '', ...removals] = all['uninstall'] ?? [];
    const installations = (all['install'] ?? []).filter((command) => command.startsWith('helm'));
    expect(installations).toHaveLength(2);
    // With each way to get certificates.
    for (const installation of installations) {
      await each([installation, ...(all['upgrade'] ?? [])]);
      // What a person may take away in need, an upgrade brings back.
      const [upgrade = ''] = all['upgrade'] ?? [];
      const removed = (all['break-glass'] ?? []).filter((command) => command.startsWith('kubectl delete'));
      expect(removed).toHaveLength(2);
      await each([...removed, upgrade]);
      expect(await run('kubectl get validatingwebhookconfigurations -o name')).toContain(NAMESPACE);
      await each([uninstall]);
    }
    await each(removals);
    expect(await run('kubectl get crd -o name')).not.toContain('runtimeenforcer.kubewarden.io');
    expect(done.length).toBeGreaterThan(12);
  });

  it('a Job that looks at a node is accepted, and has the rights and mounts that the agent has', async () => {
    const text = await readFile(join(REPOSITORY, 'docs/install.md'), 'utf8');
    const [, block = ''] = /```yaml\n(# check\.yaml.*?)```/s.exec(text) ?? [];
    const job = parse(block.replace('NODE', 'node-1')) as KubeObject;
    await createObject(plane.admin.client, job, { dryRun: true });
    const { template } = job['spec'] as { readonly template: { readonly spec: PodSpec } };
    const [container] = template.spec.containers;
    expect(readCommand(container.args ?? [], {})).toMatchObject({ name: 'check' });
    const agent = workloadOf(await renderChart(), 'agent');
    const capabilities = container.securityContext['capabilities'] as Record<string, string[]>;
    expect(capabilities).toEqual(agent.container.securityContext['capabilities']);
    expect(template.spec['hostPID']).toBe(agent.pod['hostPID']);
    expect(agent.pod['securityContext']).toMatchObject(template.spec['securityContext'] as object);
    const paths = agent.container.volumeMounts.map(({ mountPath }) => mountPath);
    for (const { mountPath } of container.volumeMounts) expect(paths).toContain(mountPath);
  });
});
