import { join } from 'node:path';
import { buildGoPrograms } from '../cluster/go-programs.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import type { Progress } from '../vm/progress.ts';

const MODULE = 'sigs.k8s.io/cri-tools';
const VERSION = '1.34.0';
const PROGRAM = 'critest';
const RECIPE = '1';

/**
 * critest, Kubernetes' tests of container runtimes, built from its Go module: minutes the first time.
 *
 * @returns the program's path
 * @throws HostCommandError with the compiler's words
 */
export async function critestBinary(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: PROGRAM,
    key: contentKey([RECIPE, VERSION]),
    title: `${PROGRAM} ${VERSION} (from source, some minutes)`,
    make: async (directory) =>
      await buildGoPrograms(
        { module: MODULE, version: VERSION, programs: [PROGRAM], kind: 'test' },
        directory,
        progress,
      ),
  };
  return join(await cachedAsset(asset, progress), PROGRAM);
}
