import { copyFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey, fileDigest } from './cache.ts';
import { bootstrapDebian } from './debian.ts';
import { runHostCommand } from './host-command.ts';
import { type ImageTar, importImages } from './image-import.ts';
import type { Progress } from './progress.ts';
import { NODE_BINARY } from './repository.ts';

const SUITE = 'forky';
const ROOT_RECIPE = '2';
const DISK_RECIPE = '2';
const PACKAGES = [
  'containerd',
  'runc',
  'crun',
  'containernetworking-plugins',
  'iproute2',
  'kmod',
  'libbpf1',
  'libstdc++6',
  'procps',
  'util-linux',
];
/** Room for what a guest writes; it costs nothing on the host until it is written. */
const FREE_SPACE_MIB = 1_536;
const FILE_SYSTEM_OVERHEAD = 1.1;

/**
 * The disk that every guest boots from, for every kernel: Debian with containerd and its runtimes, our Node, and the
 * given container images in containerd's store. Guests never change it (QEMU keeps their writes elsewhere).
 *
 * @param kind of disks that are kept beside each other in the cache
 * @returns the path of a raw ext4 image
 */
export async function diskAsset(
  images: readonly ImageTar[],
  progress: Progress,
  kind = images.length === 0 ? 'disk' : 'disk-with-images',
): Promise<string> {
  const rootTar = join(await cachedAsset(rootAsset(), progress), 'root.tar');
  const digests = await Promise.all(
    images.map(async ({ ref, tarPath }) => `${ref} ${await fileDigest(tarPath)}`),
  );
  const node = await stat(NODE_BINARY);
  const asset: Asset = {
    kind,
    key: contentKey([DISK_RECIPE, rootAsset().key, process.version, String(node.size), ...digests]),
    title: `a guest's disk with ${images.length} container images`,
    make: async (directory) => await makeDisk(rootTar, images, directory),
  };
  return join(await cachedAsset(asset, progress), 'disk.img');
}

function rootAsset(): Asset {
  return {
    kind: 'guest-root',
    key: contentKey([ROOT_RECIPE, SUITE, ...PACKAGES]),
    title: `the guest's root file system from Debian ${SUITE}`,
    make: async (directory) =>
      await bootstrapDebian({
        suite: SUITE,
        variant: 'minbase',
        packages: PACKAGES,
        target: join(directory, 'root.tar'),
      }),
  };
}

async function makeDisk(rootTar: string, images: readonly ImageTar[], directory: string): Promise<void> {
  const root = join(directory, 'root');
  await mkdir(root);
  await runHostCommand([
    'tar',
    '-C',
    root,
    '-xpf',
    rootTar,
    '--exclude=./dev/*',
    '--exclude=./var/cache/apt/*',
  ]);
  for (const name of await readdir(join(root, 'var/lib/apt/lists'))) {
    await rm(join(root, 'var/lib/apt/lists', name), { recursive: true });
  }
  await copyFile(NODE_BINARY, join(root, 'usr/local/bin/node'));
  await mkdir(join(root, 'usr/lib/modules'), { recursive: true });
  await writeFile(join(root, 'etc/hostname'), 'guest\n');
  await writeFile(join(root, 'etc/hosts'), '127.0.0.1 localhost guest\n');
  await writeFile(join(root, 'etc/machine-id'), `${'0123456789abcdef'.repeat(2)}\n`);
  if (images.length > 0) await importImages(root, images);
  const usedMib = Number((await runHostCommand(['du', '-sm', '--apparent-size', root])).split('\t')[0]);
  const sizeMib = Math.ceil(usedMib * FILE_SYSTEM_OVERHEAD) + FREE_SPACE_MIB;
  const disk = join(directory, 'disk.img');
  await runHostCommand([
    'mke2fs',
    '-q',
    '-t',
    'ext4',
    '-O',
    '^has_journal',
    '-m',
    '0',
    '-d',
    root,
    disk,
    `${sizeMib}M`,
  ]);
  await rm(root, { recursive: true });
}
