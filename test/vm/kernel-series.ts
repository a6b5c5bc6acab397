/** The kernels that the product is held against: Debian's stock cloud kernels. `7` is the newest 7.x there is. */
export const KERNEL_SERIES = ['5.10', '6.1', '6.12', '7'] as const;
export type KernelSeries = (typeof KERNEL_SERIES)[number];

/** The meta package that every release of Debian has for its own kernel. */
export const KERNEL_META_PACKAGE = 'linux-image-cloud-amd64';

/** Whether a package version such as `6.12.118-1` or `7.3.4-1~bpo13+1` belongs to a series. */
export function isInSeries(version: string, series: KernelSeries): boolean {
  return version.startsWith(`${series}.`);
}

/**
 * The newest version of a series among the lines of `apt-cache madison`, which lists the newest first.
 *
 * @throws Error when there is none
 */
export function newestVersion(madison: string, series: KernelSeries): string {
  for (const line of madison.split('\n')) {
    const version = line.split('|')[1]?.trim();
    if (version !== undefined && isInSeries(version, series)) return version;
  }
  throw new Error(`no ${KERNEL_META_PACKAGE} ${series} in Debian's package lists`);
}

/**
 * The packages of one exact version that hold a kernel or its modules, out of a `Depends:` field.
 *
 * @returns `name=version` for each
 */
export function kernelPackages(depends: string, version: string): string[] {
  const packages: string[] = [];
  for (const dependency of depends.split(',')) {
    const match = /^\s*(linux-(?:image|binary|modules)-[^\s(]+)\s*\(= ([^)]+)\)/.exec(dependency);
    if (match?.[1] !== undefined && match[2] === version) packages.push(`${match[1]}=${version}`);
  }
  return packages;
}
