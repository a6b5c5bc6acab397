import { buildGoPrograms } from '../cluster/go-programs.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import type { Progress } from '../vm/progress.ts';

/** Newer than Debian's: its NRI validator can require a plugin. */
const VERSION = '2.3.7';
const MODULE = 'github.com/containerd/containerd/v2';
const PROGRAMS = ['containerd', 'containerd-shim-runc-v2'];
const RECIPE = '1';

/**
 * containerd with its shim, built from their Go module: two minutes the first time, nothing afterwards.
 *
 * @returns the directory that holds both programs and nothing else
 * @throws HostCommandError with the compiler's words
 */
export async function containerdBinaries(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'containerd',
    key: contentKey([RECIPE, VERSION]),
    title: `containerd ${VERSION} (from source, some minutes)`,
    make: async (directory) =>
      await buildGoPrograms(
        { module: MODULE, version: VERSION, programs: PROGRAMS, kind: 'build' },
        directory,
        progress,
      ),
  };
  return await cachedAsset(asset, progress);
}
