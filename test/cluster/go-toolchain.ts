import { delimiter, join } from 'node:path';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { openPrivateApt } from '../vm/debian.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

const SUITE = 'trixie';
const PACKAGES = ['golang-1.24-go', 'golang-1.24-src'];
const DEBIAN_GO = 'usr/lib/go-1.24/bin/go';
const RECIPE = '1';
/** The first Go that fetches the toolchain which a module asks for. */
const OLDEST_MINOR = 21;
/** Where Go's own archive is unpacked by its instructions, on PATH or not. */
const USUAL_PLACES = ['/usr/local/go/bin', '/usr/lib/go/bin'];

/**
 * A Go that can build any module: the machine's own from 1.21 on, otherwise Debian's in the cache. What a module
 * needs beyond it Go fetches itself.
 *
 * @returns the program's path
 */
export async function goToolchain(progress: Progress): Promise<string> {
  for (const directory of [...(process.env['PATH'] ?? '').split(delimiter), ...USUAL_PLACES]) {
    const program = join(directory, 'go');
    const minor = goMinorVersion(await runHostCommand([program, 'version']).catch(() => ''));
    if (minor !== undefined && minor >= OLDEST_MINOR) return program;
  }
  return join(await cachedAsset(debianGo(), progress), 'root', DEBIAN_GO);
}

/** The minor version in what `go version` prints, such as 26 in `go version go1.26.8 linux/amd64`. */
export function goMinorVersion(text: string): number | undefined {
  const minor = /^go version go1\.([0-9]{1,3})\b/.exec(text)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

function debianGo(): Asset {
  return {
    kind: 'go',
    key: contentKey([RECIPE, SUITE, ...PACKAGES]),
    title: `Go from Debian ${SUITE}`,
    make: async (directory) => {
      const apt = await openPrivateApt(join(directory, 'apt'), [SUITE]);
      await apt.unpack(PACKAGES, join(directory, 'root'));
      await runHostCommand(['rm', '-rf', join(directory, 'apt')]);
    },
  };
}
