import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ControlPlane } from '../cluster/control-plane.ts';
import { adminConfig } from '../kubectl/plugin-runner.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { helmBinary } from './helm-binary.ts';

/** Helm, as the administrator of a cluster. */
export interface HelmRunner {
  /** What it, or kubectl, is told the cluster by. */
  readonly kubeconfig: string;
  /** Its standard output. Rejects with a HostCommandError with its words. */
  run(args: readonly string[], values?: object): Promise<string>;
  stop(): Promise<void>;
}

/** @param namespace where its releases are */
export async function helmRunner(plane: ControlPlane, namespace: string): Promise<HelmRunner> {
  const directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-helm-'));
  const helm = await helmBinary(printProgress);
  const kubeconfig = join(directory, 'kubeconfig');
  await writeFile(kubeconfig, JSON.stringify(adminConfig(plane, namespace)), { mode: 0o600 });
  const env = { HOME: directory, KUBECONFIG: kubeconfig };
  let files = 0;
  return {
    kubeconfig,
    async run(args, values = {}) {
      const file = join(directory, `values-${files++}.json`);
      await writeFile(file, JSON.stringify(values));
      const takesValues = ['install', 'upgrade', 'template'].includes(args[0] ?? '');
      const more = takesValues ? ['--values', file] : [];
      const place = args.includes('-n') ? [] : ['--namespace', namespace];
      return await runHostCommand([helm, ...args, ...more, ...place], { env, cwd: REPOSITORY });
    },
    stop: async () => await rm(directory, { recursive: true, force: true }),
  };
}
