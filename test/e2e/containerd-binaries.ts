import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

/** Newer than Debian's: its NRI validator can require a plugin. */
const VERSION = '2.3.7';
const MODULE = 'github.com/containerd/containerd/v2';
const PROGRAMS = ['containerd', 'containerd-shim-runc-v2'];
const RECIPE = '1';

/**
 * containerd with its shim, built from their Go module: two minutes the first time, nothing afterwards.
 *
 * @returns the directory that holds both programs and nothing else
 * @throws HostCommandError with the compiler's words
 */
export async function containerdBinaries(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'containerd',
    key: contentKey([RECIPE, VERSION]),
    title: `containerd ${VERSION} (from source, some minutes)`,
    make: async (directory) => await build(await goToolchain(progress), directory),
  };
  return await cachedAsset(asset, progress);
}

async function build(go: string, directory: string): Promise<void> {
  const source = join(directory, 'source');
  await mkdir(source);
  await writeFile(join(source, 'go.mod'), `module containerd-programs\n\nrequire ${MODULE} v${VERSION}\n`);
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOWORK: 'off', GOFLAGS: '-mod=mod -buildvcs=false' };
  // The build yields to everything else: tests that measure time may run beside it.
  const build = ['nice', '-n', '19', 'ionice', '-c', '3', go, 'build', '-p', '1', '-trimpath'] as const;
  for (const program of PROGRAMS) {
    await runHostCommand(
      [...build, '-ldflags', '-s -w', '-o', join(directory, program), `${MODULE}/cmd/${program}`],
      { cwd: source, env },
    );
  }
  await rm(source, { recursive: true });
}
