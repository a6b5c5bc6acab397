import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goToolchain } from '../cluster/go-toolchain.ts';
import { type Asset, cachedAsset, contentKey } from '../vm/cache.ts';
import { runHostCommand } from '../vm/host-command.ts';
import type { Progress } from '../vm/progress.ts';

/**
 * The modules of `github.com/containerd/nri` that the program is built with: one that tells of a container's start by
 * StateChange, as every release before 0.12 does, and one that has a call of its own for it.
 */
export const NRI_MODULES = {
  '0.11.0': 'nri-0.11.mod',
  '0.12.5': 'go.mod',
} as const;
export type NriVersion = keyof typeof NRI_MODULES;

const PROGRAM = 'nri-runtime';
const RECIPE = '1';

/**
 * The program of this directory, built with one version of NRI: half a minute the first time, nothing afterwards.
 *
 * @returns the program's path
 * @throws HostCommandError with the compiler's words
 */
export async function nriRuntimeBinary(version: NriVersion, progress: Progress): Promise<string> {
  const modFile = NRI_MODULES[version];
  const sources = ['main.go', modFile, modFile.replace(/mod$/, 'sum')];
  const contents = await Promise.all(
    sources.map(async (name) => await readFile(join(import.meta.dirname, name))),
  );
  const asset: Asset = {
    kind: `${PROGRAM}-${version}`,
    key: contentKey([RECIPE, ...contents]),
    title: `the runtime side of NRI ${version}`,
    make: async (directory) => {
      const go = await goToolchain(progress);
      // WebAssembly plugins have no part in this and would double the program.
      const flags = ['-p', '1', '-trimpath', '-tags', 'nri_no_wasm', '-modfile', modFile];
      const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'auto', GOWORK: 'off', GOFLAGS: '-buildvcs=false' };
      await runHostCommand(['nice', '-n', '19', go, 'build', ...flags, '-o', join(directory, PROGRAM), '.'], {
        cwd: import.meta.dirname,
        env,
      });
    },
  };
  return join(await cachedAsset(asset, progress), PROGRAM);
}
