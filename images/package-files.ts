import { lstat, readFile, readlink } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import type { UnpackedPackages } from './debian-packages.ts';
import type { PackagedFile } from './shared-libraries.ts';
import type { TarEntry } from './tar.ts';

/** Where scanners look for the packages of an image that has no dpkg. */
const STATUS_DIRECTORY = 'var/lib/dpkg/status.d';

/**
 * Files of packages as they stand in an image, links with what they lead to. For each package, what says its licence
 * and its version comes with them.
 */
export async function packageFiles(
  files: readonly PackagedFile[],
  packages: UnpackedPackages,
): Promise<readonly TarEntry[]> {
  const entries: TarEntry[] = [];
  for (const { packageName, path } of files) {
    entries.push(...(await fileWithLinks(packages.directoryOf(packageName), path)));
  }
  for (const name of packagesOf(files)) entries.push(...(await packageNotice(name, packages)));
  return entries;
}

/** The names of the packages that files are of, in order. */
export function packagesOf(files: readonly PackagedFile[]): readonly string[] {
  return [...new Set(files.map(({ packageName }) => packageName))].toSorted();
}

async function fileWithLinks(root: string, path: string): Promise<readonly TarEntry[]> {
  const file = join(root, path);
  const found = await lstat(file);
  if (!found.isSymbolicLink()) {
    return [{ kind: 'file', path, mode: found.mode & 0o777, content: await readFile(file) }];
  }
  const target = await readlink(file);
  const next = normalize(join(dirname(path), target));
  // A link into another package: that one brings the file.
  const rest = next.startsWith('..') ? [] : await fileWithLinks(root, next);
  return [{ kind: 'symlink', path, target }, ...rest];
}

async function packageNotice(name: string, packages: UnpackedPackages): Promise<readonly TarEntry[]> {
  const described = packages.packages.find((found) => found.name === name);
  const license = await copyright(name, packages);
  return [
    { kind: 'file', path: `usr/share/doc/${name}/copyright`, mode: 0o644, content: license },
    {
      kind: 'file',
      path: `${STATUS_DIRECTORY}/${name}`,
      mode: 0o644,
      content: Buffer.from(described?.control ?? ''),
    },
  ];
}

/** Some packages leave their licence to another one of the same source, by a link. */
async function copyright(name: string, packages: UnpackedPackages): Promise<Buffer> {
  const documents = join(packages.directoryOf(name), 'usr/share/doc', name);
  const isLink = (await lstat(documents)).isSymbolicLink();
  if (!isLink) return await readFile(join(documents, 'copyright'));
  return await copyright(basename(await readlink(documents)), packages);
}
