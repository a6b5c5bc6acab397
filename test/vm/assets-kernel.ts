import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from './cache.ts';
import { type PrivateApt, openPrivateApt } from './debian.ts';
import { runHostCommand } from './host-command.ts';
import { GUEST_MODULES, copyGuestModules } from './kernel-modules.ts';
import {
  KERNEL_META_PACKAGE,
  KERNEL_SERIES,
  type KernelSeries,
  kernelPackages,
  newestVersion,
} from './kernel-series.ts';
import { archiveTree } from './archive-tree.ts';
import type { Progress } from './progress.ts';

const RECIPE = '2';
const SUITES = [
  'bullseye',
  'bullseye-security',
  'bookworm',
  'bookworm-security',
  'trixie',
  'trixie-security',
  'trixie-backports',
  'forky',
];

export interface GuestKernel {
  /** `uname -r` */
  release: string;
  /** The compressed kernel image that QEMU boots. */
  image: string;
  /** A cpio archive with the modules that guests load, under `lib/modules`. */
  modulesArchive: string;
}

/**
 * The stock kernel of a series. The newest of every series is looked up when the first one is needed and all four
 * are fetched together; they stay until `RUNTIME_ENFORCER_REFRESH_KERNELS` has another value (any text, such as a
 * date) than at the last fetch.
 */
export async function kernelAsset(series: KernelSeries, progress: Progress): Promise<GuestKernel> {
  const refresh = process.env['RUNTIME_ENFORCER_REFRESH_KERNELS'] ?? '';
  const asset: Asset = {
    kind: 'kernels',
    key: contentKey([RECIPE, ...SUITES, ...KERNEL_SERIES, ...GUEST_MODULES, refresh]),
    title: `Debian's kernels ${KERNEL_SERIES.join(', ')}`,
    make: async (directory) => await fetchKernels(directory, progress),
  };
  const directory = join(await cachedAsset(asset, progress), series);
  return {
    release: (await readFile(join(directory, 'release'), 'utf8')).trim(),
    image: join(directory, 'vmlinuz'),
    modulesArchive: join(directory, 'modules.cpio'),
  };
}

async function fetchKernels(directory: string, progress: Progress): Promise<void> {
  const work = join(directory, 'work');
  progress(`fetching the package lists of ${SUITES.join(', ')}`);
  const apt = await openPrivateApt(join(work, 'apt'), SUITES);
  const madison = await apt.query('madison', KERNEL_META_PACKAGE);
  for (const series of KERNEL_SERIES) {
    const version = newestVersion(madison, series);
    progress(`fetching kernel ${version}`);
    const unpacked = join(work, series);
    await mkdir(unpacked);
    await apt.unpack(await packagesOf(apt, version), unpacked);
    await runHostCommand(['find', join(work, 'apt/debs'), '-type', 'f', '-delete']);
    await keepKernel(unpacked, join(directory, series));
  }
  await runHostCommand(['rm', '-rf', work]);
}

async function packagesOf(apt: PrivateApt, version: string): Promise<string[]> {
  const found = new Set<string>();
  let frontier = [`${KERNEL_META_PACKAGE}=${version}`];
  while (frontier.length > 0) {
    const depends = await apt.query('show', ...frontier);
    const lines = depends.split('\n').filter((line) => line.startsWith('Depends:'));
    frontier = lines
      .flatMap((line) => kernelPackages(line.slice('Depends:'.length), version))
      .filter((name) => !found.has(name));
    for (const name of frontier) found.add(name);
  }
  if (found.size === 0) throw new Error(`${KERNEL_META_PACKAGE} ${version} names no kernel package`);
  return [...found];
}

async function keepKernel(unpacked: string, target: string): Promise<void> {
  await mkdir(target);
  // Newer packages install below /usr; depmod and the guest's modprobe look below /lib.
  const merged = join(unpacked, 'usr/lib/modules');
  const modules = existsSync(merged) ? merged : join(unpacked, 'lib/modules');
  const [release, ...others] = await readdir(modules);
  if (release === undefined || others.length > 0) {
    throw new Error(`expected one kernel release in ${modules}, found ${[release, ...others].join(', ')}`);
  }
  if (modules === merged) {
    await runHostCommand(['cp', '-al', join(unpacked, 'usr/lib/.'), join(unpacked, 'lib')]);
  }
  await copyGuestModules(join(unpacked, 'lib/modules', release), join(unpacked, 'guest'));
  await writeFile(join(target, 'modules.cpio'), await archiveTree(join(unpacked, 'guest'), '/'));
  const images = [
    join(unpacked, 'boot', `vmlinuz-${release}`),
    join(unpacked, 'lib/modules', release, 'vmlinuz'),
  ];
  const image = images.find((path) => existsSync(path));
  if (image === undefined) throw new Error(`expected the kernel ${release} at ${images.join(' or ')}`);
  await copyFile(image, join(target, 'vmlinuz'));
  await writeFile(join(target, 'release'), `${release}\n`);
}
