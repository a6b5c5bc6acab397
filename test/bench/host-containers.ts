import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { openCgroupTree } from '@runtime-enforcer/agent/containers/cgroup-tree';
import { loadNative } from '@runtime-enforcer/agent/kernel/native';
import type { NriContainer, NriPodSandbox } from '@runtime-enforcer/agent/nri/messages';
import { containerOf, podOf } from './container-place.ts';

/** Below the root of the hierarchy that the agent reads, beside those of other runs. */
const PARENT = `/runtime-enforcer-bench-${process.pid}`;

/** A process of this machine in a cgroup and a mount namespace of its own, as the runtime tells of it. */
export interface HostContainer {
  readonly pod: NriPodSandbox;
  readonly container: NriContainer;
}

export interface HostContainers {
  readonly containers: readonly HostContainer[];
  /** Ends the processes and removes the cgroups. */
  remove(): Promise<void>;
}

/**
 * Makes containers whose pods name a policy, or none, as `policies` says.
 *
 * @throws Error where this process may not make cgroups or mount namespaces
 */
export async function createHostContainers(
  policies: readonly (string | undefined)[],
): Promise<HostContainers> {
  const { root } = await openCgroupTree(loadNative());
  const made: { readonly directory: string; readonly child: ChildProcess }[] = [];
  const remove = async (): Promise<void> => {
    for (const { child, directory } of made) {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
      await rmdir(directory);
    }
    await rmdir(`${root}${PARENT}`);
  };
  await mkdir(`${root}${PARENT}`, { recursive: true });
  try {
    const containers: HostContainer[] = [];
    for (const [index, policy] of policies.entries()) {
      const name = `host-${index}`;
      const directory = `${root}${PARENT}/${name}`;
      await mkdir(directory, { recursive: true });
      // The shell says when the namespace is there.
      const shell = ['unshare', '--mount', 'sh', '-c', 'echo ready; exec sleep infinity'];
      const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...shell], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      made.push({ directory, child });
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      if (line.toString() !== 'ready\n') throw new Error(`unshare wrote ${line.toString()}`);
      await writeFile(`${directory}/cgroup.procs`, String(child.pid));
      containers.push({
        pod: podOf(name, policy),
        container: containerOf(name, `${PARENT}/${name}`, child.pid ?? 0),
      });
    }
    return { containers, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
