import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { openPrivateApt } from '../vm/debian.ts';
import type { Progress } from '../vm/progress.ts';

const SUITE = 'trixie';
const PACKAGES = ['etcd-server', 'etcd-client'];
const RECIPE = '1';

export interface Etcd {
  readonly server: string;
  /** `etcdctl` */
  readonly client: string;
}

/** etcd as Debian packages it (statically linked, so any host runs it), unpacked into the cache. */
export async function etcdBinaries(progress: Progress): Promise<Etcd> {
  const asset: Asset = {
    kind: 'etcd',
    key: contentKey([RECIPE, SUITE, ...PACKAGES]),
    title: `etcd from Debian ${SUITE}`,
    make: async (directory) => {
      const apt = join(directory, 'apt');
      await (await openPrivateApt(apt, [SUITE])).unpack(PACKAGES, join(directory, 'root'));
      await rm(apt, { recursive: true });
    },
  };
  const programs = join(await cachedAsset(asset, progress), 'root/usr/bin');
  return { server: join(programs, 'etcd'), client: join(programs, 'etcdctl') };
}
