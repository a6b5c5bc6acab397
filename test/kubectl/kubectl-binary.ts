import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { goModFor, KUBERNETES_VERSION } from '../cluster/kubernetes-binary.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

const MODULE = 'k8s.io/kubernetes';
const RECIPE = '1';

/**
 * kubectl, built from its Go module: minutes the first time, nothing afterwards.
 *
 * @returns the directory that holds it, and nothing else
 * @throws HostCommandError with the compiler's words
 */
export async function kubectlDirectory(progress: Progress): Promise<string> {
  const asset: Asset = {
    kind: 'kubectl',
    key: contentKey([RECIPE, KUBERNETES_VERSION]),
    title: `kubectl ${KUBERNETES_VERSION} (from source, some minutes)`,
    make: async (directory) => await build(await goToolchain(progress), directory),
  };
  return await cachedAsset(asset, progress);
}

async function build(go: string, directory: string): Promise<void> {
  const source = join(directory, 'source');
  await mkdir(source);
  const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOWORK: 'off', GOFLAGS: '-mod=mod -buildvcs=false' };
  const download = [go, 'mod', 'download', '-json', `${MODULE}@v${KUBERNETES_VERSION}`] as const;
  const { GoMod } = JSON.parse(await runHostCommand([...download], { cwd: source, env })) as {
    readonly GoMod: string;
  };
  const itsModule = JSON.parse(await runHostCommand([go, 'mod', 'edit', '-json', GoMod])) as Parameters<
    typeof goModFor
  >[0];
  await writeFile(join(source, 'go.mod'), goModFor(itsModule, KUBERNETES_VERSION));
  const version = `-X k8s.io/component-base/version.gitVersion=v${KUBERNETES_VERSION}`;
  const argv = ['nice', '-n', '19', 'ionice', '-c', '3', go, 'build', '-p', '1', '-trimpath'] as const;
  await runHostCommand(
    [...argv, '-ldflags', `-s -w ${version}`, '-o', join(directory, 'kubectl'), `${MODULE}/cmd/kubectl`],
    { cwd: source, env },
  );
  await rm(source, { recursive: true });
}
