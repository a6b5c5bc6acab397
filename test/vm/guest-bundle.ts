import { join } from 'node:path';
import { build } from 'esbuild';
import { REPOSITORY } from './repository.ts';

/** Lets bundled CommonJS modules find Node's own modules. */
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

/**
 * Bundles TypeScript for the guest's Node into one ES module: a guest has no checkout and no node_modules. Native
 * addons and files that code reads at run time are not part of it; they travel in the payload.
 *
 * @param entry the text of a module, importing by absolute path
 * @throws Error with esbuild's messages
 */
export async function bundleForGuest(entry: string): Promise<Uint8Array> {
  const result = await build({
    stdin: { contents: entry, resolveDir: REPOSITORY, sourcefile: 'guest-entry.ts', loader: 'ts' },
    tsconfig: join(REPOSITORY, 'tsconfig.json'),
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    keepNames: true,
    external: ['*.node'],
    banner: { js: BANNER },
    logLevel: 'silent',
  });
  const [file] = result.outputFiles;
  if (file === undefined) throw new Error('esbuild wrote nothing');
  return file.contents;
}
