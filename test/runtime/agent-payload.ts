import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buildGuestPrograms } from '../guest-programs/build.ts';
import { withFileLock } from '../vm/file-lock.ts';
import { cacheDirectory } from '../vm/cache.ts';
import type { PayloadItem } from '../vm/guest-initramfs.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { printProgress } from '../vm/progress.ts';
import { REPOSITORY } from '../vm/repository.ts';

const AGENT_IN_GUEST = '/run/payload/agent';

/**
 * Builds what is shipped (kernel program, addon, bundle) and returns it for a guest, with the target of the attacks
 * beside it.
 *
 * @throws HostCommandError with the compiler's output if the build fails
 */
export async function agentPayload(): Promise<readonly PayloadItem[]> {
  printProgress('building the agent');
  await withFileLock(
    join(cacheDirectory(), 'locks', 'build'),
    async () => await runHostCommand(['npm', 'run', '--silent', 'build'], { cwd: REPOSITORY }),
    () => printProgress('waiting for another process that builds'),
  );
  const dist = join(REPOSITORY, 'agent', 'dist');
  const files = await readdir(dist);
  const { marker } = await buildGuestPrograms();
  return [
    ...files.map((name) => ({ path: `${AGENT_IN_GUEST}/${name}`, source: join(dist, name) })),
    { path: '/run/payload/marker', source: marker },
  ];
}
