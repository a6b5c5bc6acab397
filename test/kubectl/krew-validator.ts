import { join } from 'node:path';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

const MODULE = 'sigs.k8s.io/krew';
const VERSION = 'v0.4.3';
const PROGRAM = 'validate-krew-manifest';
const RECIPE = '1';

/**
 * The program by which krew's index checks manifests, built from its Go module.
 *
 * @returns its path
 */
export async function krewValidator(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'krew-validator',
    key: contentKey([RECIPE, VERSION]),
    title: `${PROGRAM} ${VERSION} (from source)`,
    make: async (directory) => {
      const go = await goToolchain(progress);
      const env = { CGO_ENABLED: '0', GOFLAGS: '-trimpath', GOBIN: directory, GOWORK: 'off' };
      await runHostCommand(['nice', '-n', '19', go, 'install', `${MODULE}/cmd/${PROGRAM}@${VERSION}`], {
        env,
      });
    },
  };
  return join(await cachedAsset(asset, progress), PROGRAM);
}
