import { access } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runHostCommand } from '../test/vm/host-command.ts';
import type { Architecture } from './architecture.ts';
import type { UnpackedPackages } from './debian-packages.ts';

/** What an ELF file says that it needs to run. */
interface ElfNeeds {
  readonly machine: string;
  readonly libraries: readonly string[];
  /** Absolute; only programs name one. */
  readonly interpreter: string | undefined;
}

/** A file of a Debian package. */
export interface PackagedFile {
  readonly packageName: string;
  /** Relative to the root. */
  readonly path: string;
}

/**
 * All shared libraries that the given ELF files load, and those that these load, with the program that loads them.
 *
 * @throws Error for a file of another machine, and for a library that no package has
 */
export async function sharedLibraries(
  files: readonly string[],
  architecture: Architecture,
  packages: UnpackedPackages,
): Promise<readonly PackagedFile[]> {
  const found = new Map<string, PackagedFile>();
  const pending = [...files];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    const needs = await elfNeeds(file);
    if (needs.machine !== architecture.elfMachine) {
      throw new Error(
        `${file} is for ${needs.machine}: expected ${architecture.elfMachine}; build it on such a machine`,
      );
    }
    const names = [
      ...needs.libraries,
      ...(needs.interpreter === undefined ? [] : [basename(needs.interpreter)]),
    ];
    for (const name of names) {
      if (found.has(name)) continue;
      const packaged = await packagedFile(`${architecture.libraryDirectory}/${name}`, packages);
      if (packaged === undefined) {
        throw new Error(`${file} needs ${name}, which no Debian package of the images has`);
      }
      found.set(name, packaged);
      pending.push(join(packages.directoryOf(packaged.packageName), packaged.path));
    }
    if (needs.interpreter !== undefined) {
      const packaged = await packagedFile(`usr${needs.interpreter}`, packages);
      if (packaged !== undefined) found.set(needs.interpreter, packaged);
    }
  }
  return [...found.values()].toSorted((left, right) => (left.path < right.path ? -1 : 1));
}

async function packagedFile(path: string, packages: UnpackedPackages): Promise<PackagedFile | undefined> {
  for (const { name } of packages.packages) {
    const isThere = await access(join(packages.directoryOf(name), path)).then(
      () => true,
      () => false,
    );
    if (isThere) return { packageName: name, path };
  }
  return undefined;
}

async function elfNeeds(file: string): Promise<ElfNeeds> {
  const text = await runHostCommand(
    ['readelf', '--wide', '--file-header', '--dynamic', '--program-headers', file],
    {
      env: { LC_ALL: 'C' },
    },
  );
  return {
    machine: /^ +Machine: +(?:Advanced Micro Devices )?(.+)$/m.exec(text)?.[1] ?? 'an unknown machine',
    libraries: [...text.matchAll(/\(NEEDED\).*\[(.+)\]$/gm)].map(([, name = '']) => name),
    interpreter: /\[Requesting program interpreter: (.+)\]/.exec(text)?.[1],
  };
}
