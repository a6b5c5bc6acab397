import { join } from 'node:path';
import { buildGuestPrograms, GUEST_PROGRAMS } from '../guest-programs/build.ts';
import type { PayloadItem } from '../vm/guest-initramfs.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';
import { OBJECTS, PROGRAMS } from './guest-files.ts';

/**
 * Builds the kernel program (and the same with another ABI), the addon and the guest programs, and returns them for
 * a guest.
 *
 * @throws HostCommandError with the compiler's output if the build fails
 */
export async function programPayload(): Promise<readonly PayloadItem[]> {
  printProgress('building the kernel program and the addon');
  await runHostCommand(['make', '-s', '-C', 'bpf', 'all', 'variants'], { cwd: REPOSITORY });
  await runHostCommand(['make', '-s', '-C', 'agent/native'], { cwd: REPOSITORY });
  const programs = await buildGuestPrograms();
  const bpf = join(REPOSITORY, 'bpf', 'build');
  return [
    { path: OBJECTS.addon, source: join(REPOSITORY, 'agent/native/build/enforcer_native.node') },
    { path: OBJECTS.enforcer, source: join(bpf, 'enforcer.bpf.o') },
    { path: OBJECTS.rebuilt, source: join(bpf, 'enforcer-other-build.bpf.o') },
    { path: OBJECTS.otherAbi, source: join(bpf, 'enforcer-other-abi.bpf.o') },
    { path: OBJECTS.probe, source: join(bpf, 'probe.bpf.o') },
    ...GUEST_PROGRAMS.map((name) => ({ path: `${PROGRAMS}/${name}`, source: programs[name] })),
  ];
}
