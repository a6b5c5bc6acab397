import { copyFile, mkdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { BUILT_FILES, bundleOptions } from './bundle-options.ts';

const OUTPUT = join(import.meta.dirname, 'dist');

/**
 * Bundles the agent into `dist`, with the addon and the kernel objects beside it. A node needs this directory, Node and
 * libbpf.
 */
async function bundleAgent(): Promise<void> {
  await rm(OUTPUT, { recursive: true, force: true });
  await mkdir(OUTPUT);
  await build(bundleOptions(OUTPUT));
  for (const file of BUILT_FILES) await copyFile(file, join(OUTPUT, basename(file)));
}

await bundleAgent();
