import { copyFile, mkdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';

const HERE = import.meta.dirname;
const OUTPUT = join(HERE, 'dist');

/** Lets bundled CommonJS modules find Node's own modules. */
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

/** What make has built, and the agent finds beside its bundle. */
const BUILT = [
  join(HERE, 'native/build/enforcer_native.node'),
  join(HERE, '../bpf/build/enforcer.bpf.o'),
  join(HERE, '../bpf/build/probe.bpf.o'),
];

/** Its module for `import` loads gRPC at run time in a way that no bundler sees; the one for `require` does not. */
const OTLP_GRPC = '@opentelemetry/otlp-grpc-exporter-base';

/**
 * Bundles the agent into `dist`: `agent.mjs`, the thread that reads large policy files, the addon and the kernel
 * objects. A node needs this directory, Node and libbpf.
 */
async function bundleAgent(): Promise<void> {
  await rm(OUTPUT, { recursive: true, force: true });
  await mkdir(OUTPUT);
  await build({
    entryPoints: {
      agent: join(HERE, 'src/main.ts'),
      'policy-parser-worker': join(HERE, 'src/standalone/policy-parser-worker.ts'),
    },
    outdir: OUTPUT,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    external: ['*.node'],
    alias: { [OTLP_GRPC]: createRequire(join(HERE, '../telemetry/package.json')).resolve(OTLP_GRPC) },
    banner: { js: BANNER },
    logLevel: 'warning',
  });
  for (const file of BUILT) await copyFile(file, join(OUTPUT, file.slice(file.lastIndexOf('/') + 1)));
}

await bundleAgent();
