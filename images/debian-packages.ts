import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../test/vm/cache.ts';
import { type DebianPackage, openPrivateApt } from '../test/vm/debian.ts';
import type { Progress } from '../test/vm/progress.ts';
import type { Architecture } from './architecture.ts';

const RECIPE = '1';
/** Debian's stable suite: what images hold has security updates there. */
export const DEBIAN_SUITE = 'trixie';
const SUITES = [DEBIAN_SUITE, `${DEBIAN_SUITE}-security`];
/** Packages that images may take files of; each image has only those that it needs. */
const PACKAGES = [
  'base-files',
  'ca-certificates',
  'gcc-14-base',
  'libbpf1',
  'libc6',
  'libelf1t64',
  'libgcc-s1',
  'libstdc++6',
  'libzstd1',
  'zlib1g',
];
const PACKAGE_LIST = 'packages.json';

/** Debian packages of one architecture, each unpacked into a directory of its own. */
export interface UnpackedPackages {
  readonly packages: readonly DebianPackage[];
  /** Where the files of a package are. @throws Error for one that is not among them */
  directoryOf(name: string): string;
}

/**
 * The packages that images are made from, as Debian has them when they are first needed. They stay until
 * `RUNTIME_ENFORCER_REFRESH_IMAGES` has another value (any text, such as a date) than at the last fetch.
 */
export async function debianPackages(
  { name: architecture }: Pick<Architecture, 'name'>,
  progress: Progress,
): Promise<UnpackedPackages> {
  const refresh = process.env['RUNTIME_ENFORCER_REFRESH_IMAGES'] ?? '';
  const asset: Asset = {
    kind: `image-packages-${architecture}`,
    key: contentKey([RECIPE, ...SUITES, ...PACKAGES, refresh]),
    title: `the images' packages from Debian ${DEBIAN_SUITE} for ${architecture}`,
    make: async (directory) => {
      const work = join(directory, 'apt');
      await mkdir(work);
      const apt = await openPrivateApt(work, SUITES, architecture);
      const unpacked = await apt.unpackEach(PACKAGES, directory);
      await rm(work, { recursive: true });
      const inOrder = unpacked.toSorted((left, right) => (left.name < right.name ? -1 : 1));
      await writeFile(join(directory, PACKAGE_LIST), JSON.stringify(inOrder));
    },
  };
  const directory = await cachedAsset(asset, progress);
  const packages = JSON.parse(await readFile(join(directory, PACKAGE_LIST), 'utf8')) as DebianPackage[];
  return {
    packages,
    directoryOf(name) {
      if (packages.some((found) => found.name === name)) return join(directory, name);
      throw new Error(`the Debian package ${name} is not among those that images are made from`);
    },
  };
}
