import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { openPrivateApt } from '../vm/debian.ts';
import type { Progress } from '../vm/progress.ts';

const SUITE = 'trixie';
const PACKAGE = 'promtool';
const RECIPE = '1';

/** Prometheus' checking tool as Debian packages it, unpacked into the cache. @returns the program's path */
export async function promtoolBinary(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'promtool',
    key: contentKey([RECIPE, SUITE, PACKAGE]),
    title: `promtool from Debian ${SUITE}`,
    make: async (directory) => {
      const apt = join(directory, 'apt');
      await (await openPrivateApt(apt, [SUITE])).unpack([PACKAGE], join(directory, 'root'));
      await rm(apt, { recursive: true });
    },
  };
  return join(await cachedAsset(asset, progress), 'root/usr/bin/promtool');
}
