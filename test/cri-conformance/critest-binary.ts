import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

const MODULE = 'sigs.k8s.io/cri-tools';
const VERSION = '1.34.0';
const RECIPE = '1';

/**
 * critest, Kubernetes' tests of container runtimes, built from its Go module: minutes the first time.
 *
 * @returns the program's path
 * @throws HostCommandError with the compiler's words
 */
export async function critestBinary(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'critest',
    key: contentKey([RECIPE, VERSION]),
    title: `critest ${VERSION} (from source, some minutes)`,
    make: async (directory) => await build(await goToolchain(progress), directory),
  };
  return join(await cachedAsset(asset, progress), 'critest');
}

async function build(go: string, directory: string): Promise<void> {
  const source = join(directory, 'source');
  await mkdir(source);
  await writeFile(join(source, 'go.mod'), `module critest-program\n\nrequire ${MODULE} v${VERSION}\n`);
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOWORK: 'off', GOFLAGS: '-mod=mod -buildvcs=false' };
  // The build yields to everything else: tests that measure time may run beside it.
  const build = [
    'nice',
    '-n',
    '19',
    'ionice',
    '-c',
    '3',
    go,
    'test',
    '-c',
    '-vet=off',
    '-p',
    '1',
    '-trimpath',
  ] as const;
  await runHostCommand(
    [...build, '-ldflags', '-s -w', '-o', join(directory, 'critest'), `${MODULE}/cmd/critest`],
    { cwd: source, env },
  );
  await rm(source, { recursive: true });
}
