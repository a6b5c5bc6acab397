import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from './cache.ts';
import { bootstrapDebian } from './debian.ts';
import type { Progress } from './progress.ts';

const SUITE = 'trixie';
const PACKAGE = 'qemu-system-x86';
const RECIPE = '1';

/** How to start QEMU: what comes in front of its own arguments, and its environment. */
export interface Qemu {
  command: readonly string[];
  env: Readonly<Record<string, string>>;
}

/**
 * QEMU 10 in a root of its own, run by that root's loader and libraries: the guests need this version whatever the
 * host is (7.2 breaks kernels that patch their code on two processors).
 */
export async function qemuAsset(progress: Progress): Promise<Qemu> {
  const asset: Asset = {
    kind: 'qemu',
    key: contentKey([RECIPE, SUITE, PACKAGE]),
    title: `QEMU from Debian ${SUITE}`,
    make: async (directory) =>
      await bootstrapDebian({
        suite: SUITE,
        variant: 'essential',
        packages: [PACKAGE],
        target: join(directory, 'root'),
      }),
  };
  const root = join(await cachedAsset(asset, progress), 'root');
  const libraries = join(root, 'usr/lib/x86_64-linux-gnu');
  return {
    command: [
      join(root, 'usr/lib64/ld-linux-x86-64.so.2'),
      '--library-path',
      libraries,
      join(root, 'usr/bin/qemu-system-x86_64'),
      ...['usr/share/qemu', 'usr/share/seabios', 'usr/lib/ipxe/qemu'].flatMap((data) => [
        '-L',
        join(root, data),
      ]),
    ],
    env: { QEMU_MODULE_DIR: join(libraries, 'qemu') },
  };
}
