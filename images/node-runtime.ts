import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../test/vm/cache.ts';
import { runHostCommand } from '../test/vm/host-command.ts';
import type { Progress } from '../test/vm/progress.ts';
import type { Architecture } from './architecture.ts';

const RECIPE = '1';

/**
 * What Node runs under in an image. By itself glibc keeps what was freed, in an arena for each thread: of an idle agent's
 * memory that was 17 MiB, a third of all that is its own.
 */
export const NODE_ENVIRONMENT = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/** Node for an image: the program and its licence, without npm. */
export interface NodeRuntime {
  readonly version: string;
  readonly program: string;
  readonly license: string;
}

/** The same version of Node as runs here, from its npm package, without the symbols that only debuggers read. */
export async function nodeRuntime(
  { nodePackage }: Pick<Architecture, 'nodePackage'>,
  progress: Progress,
): Promise<NodeRuntime> {
  const version = process.versions.node;
  const asset: Asset = {
    kind: `image-${nodePackage}`,
    key: contentKey([RECIPE, version]),
    title: `Node ${version} (${nodePackage})`,
    make: async (directory) => {
      await runHostCommand(['npm', 'pack', '--silent', `${nodePackage}@${version}`], { cwd: directory });
      const archive = join(directory, `${nodePackage}-${version}.tgz`);
      const wanted = ['package/bin/node', 'package/LICENSE'];
      await runHostCommand(['tar', '-xzf', archive, '-C', directory, '--strip-components=1', ...wanted]);
      await rm(archive);
      await runHostCommand(['llvm-strip', join(directory, 'bin/node')]);
    },
  };
  const directory = await cachedAsset(asset, progress);
  return { version, program: join(directory, 'bin/node'), license: join(directory, 'LICENSE') };
}
