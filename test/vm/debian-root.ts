import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from './cache.ts';
import { openPrivateApt } from './debian.ts';
import type { Progress } from './progress.ts';

const RECIPE = '1';

/** Packages of one Debian suite that are unpacked together, without what they depend on. */
export interface DebianRoot {
  /** Of the asset in the cache. */
  readonly kind: string;
  /** For the progress line, such as `etcd`. */
  readonly title: string;
  readonly suite: string;
  readonly packages: readonly string[];
}

/** Packages unpacked into the cache, without running their scripts. @returns the directory of their files */
export async function debianRoot(
  { kind, title, suite, packages }: DebianRoot,
  progress: Progress,
): Promise<string> {
  const asset: Asset = {
    kind,
    key: contentKey([RECIPE, suite, ...packages]),
    title: `${title} from Debian ${suite}`,
    make: async (directory) => {
      const apt = join(directory, 'apt');
      await (await openPrivateApt(apt, [suite])).unpack(packages, join(directory, 'root'));
      await rm(apt, { recursive: true });
    },
  };
  return join(await cachedAsset(asset, progress), 'root');
}
