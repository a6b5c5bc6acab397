import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { ABI_VERSION } from '@runtime-enforcer/agent/kernel/gen/abi';
import type { KernelProgram, Native } from '@runtime-enforcer/agent/kernel/native';
import { DEFAULT_PIN_ROOT, pinDirectory } from '@runtime-enforcer/agent/kernel/pins';
import type { OpenKernelSide } from '@runtime-enforcer/agent/node/kernel-side';
import { STORM, createPlace, type ContainerPlace } from './container-place.ts';
import { parseStorm, type Storm } from './exec-cost.ts';
import { PATHS_PER_POLICY, policyOf, workloadPaths } from './workload.ts';

/** A path of three components, and one of eight. */
export const PATHS = {
  '3': '/usr/local/tinytrue',
  '8': '/opt/some/deeper/directory/for/a/program/x',
} as const;
export const UNLISTED = '/usr/local/unlisted';

/** Makes the kernel add up the instructions of each program. */
export function countInstructions(): void {
  writeFileSync('/proc/sys/kernel/bpf_stats_enabled', '1');
}

/** The programs that are attached now. */
export function attachedPrograms(native: Native, { enforcer }: OpenKernelSide): KernelProgram[] {
  const pins = pinDirectory(DEFAULT_PIN_ROOT, ABI_VERSION);
  return enforcer.attachment.programs.map((name) => {
    const link = native.openPinnedLink(pins.link(name));
    try {
      return native.programById(link.programId);
    } finally {
      link.close();
    }
  });
}

/** Loads a policy of 50 paths, among them those that are measured, and starts a container that it holds. */
export async function enforcedPlace(
  kernel: OpenKernelSide,
  name: string,
  mode: 'monitor' | 'protect',
): Promise<ContainerPlace> {
  const measured = [...Object.values(PATHS), STORM];
  const others = workloadPaths().slice(0, PATHS_PER_POLICY - measured.length);
  const state = await kernel.table.apply(policyOf(name, [...measured, ...others], mode));
  if (state.state !== 'ready') throw new Error(`policy ${name}: ${state.message ?? state.state}`);
  return await boundPlace(kernel, name, name, 'enforced');
}

/** Starts a container and binds it as the runtime's call would. */
export async function boundPlace(
  kernel: OpenKernelSide,
  name: string,
  policy: string | undefined,
  expected: 'enforced' | 'learning',
): Promise<ContainerPlace> {
  const place = await createPlace(name, policy, [...Object.values(PATHS), UNLISTED]);
  const { state } = await kernel.binder.bind(place.pod, place.container);
  if (state !== expected) throw new Error(`the container of ${name} is ${state} and not ${expected}`);
  return place;
}

/** Starts a program of the place from within the place. */
export function stormIn(place: ContainerPlace, path: string): Storm {
  return async (count) => {
    const { answer, output } = await place.run([STORM, '--count', String(count), path]);
    if (answer !== 'ran') throw new Error(`${STORM} in the place: ${answer} ${output}`);
    return parseStorm(output);
  };
}

/** Starts a program of the host from a cgroup of the host. */
export function stormOnHost(cgroup: string): Storm {
  const directory = `/sys/fs/cgroup${cgroup}`;
  mkdirSync(directory, { recursive: true });
  return (count) => {
    const { status, stdout, stderr } = spawnSync(
      '/run/payload/execstorm',
      ['--count', String(count), '/run/payload/tiny'],
      { env: { ENTER_CGROUP: directory }, encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(`execstorm in ${cgroup}: ${stderr}`);
    return Promise.resolve(parseStorm(stdout));
  };
}
