import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { bundledPackages } from '../../images/program-bundle.ts';

/** Modules of these packages do nothing when they are loaded, so that what is not used can be left out. */
const PURE = /^(@kubernetes\/client-node|@runtime-enforcer\/.*|yaml)(\/|$)/;

/**
 * The client library's generated models are fifteen megabytes, of which the plugin uses none; without a word of the
 * library about side effects, the bundler would keep them.
 */
const dropUnused: Plugin = {
  name: 'drop-unused',
  setup(bundler) {
    bundler.onResolve({ filter: /^[.@y]/ }, async ({ path, pluginData, ...options }) => {
      const isPure = PURE.test(path) || options.importer.includes('/@kubernetes/client-node/dist/');
      if (pluginData === dropUnused || !isPure) return undefined;
      return { ...(await bundler.resolve(path, { ...options, pluginData: dropUnused })), sideEffects: false };
    });
  },
};

export interface Bundle {
  readonly file: string;
  /** Directories of the packages that it holds a part of. */
  readonly packages: readonly string[];
}

/** Bundles the plugin into one CommonJS file, whose parts run only when a command needs them. */
export async function bundlePlugin(directory: string): Promise<Bundle> {
  const file = join(directory, 'kubectl-runtime_enforcer.cjs');
  await mkdir(directory, { recursive: true });
  await rm(file, { force: true });
  const { metafile } = await build({
    entryPoints: [join(import.meta.dirname, '../src/main.ts')],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    minify: true,
    keepNames: true,
    plugins: [dropUnused],
    metafile: true,
    logLevel: 'warning',
  });
  return { file, packages: bundledPackages(metafile) };
}
