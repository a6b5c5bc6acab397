import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';

const HERE = import.meta.dirname;

/** Lets bundled CommonJS modules find Node's own modules. */
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

/** Its module for `import` loads gRPC at run time in a way that no bundler sees; the one for `require` does not. */
const OTLP_GRPC = '@opentelemetry/otlp-grpc-exporter-base';
const KUBERNETES_CLIENT = '@kubernetes/client-node';

/** What make has built, and the agent finds beside its bundle. */
export const BUILT_FILES: readonly string[] = [
  join(HERE, 'native/build/enforcer_native.node'),
  join(HERE, '../bpf/build/enforcer.bpf.o'),
  join(HERE, '../bpf/build/probe.bpf.o'),
];

/**
 * How the agent is bundled into a directory: `agent.mjs`, the thread that reads large policy files, and files with what
 * only some commands need, so that the others neither read it nor hold it in memory.
 */
export function bundleOptions(directory: string): BuildOptions {
  return {
    entryPoints: {
      agent: join(HERE, 'src/main.ts'),
      'policy-parser-worker': join(HERE, 'src/standalone/policy-parser-worker.ts'),
    },
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    tsconfig: join(HERE, '../tsconfig.json'),
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    external: ['*.node'],
    alias: { [OTLP_GRPC]: createRequire(join(HERE, '../telemetry/package.json')).resolve(OTLP_GRPC) },
    plugins: [withoutUnusedModules(KUBERNETES_CLIENT)],
    banner: { js: BANNER },
    logLevel: 'warning',
  };
}

/**
 * Leaves out a package's modules that nothing is used of. Bundlers keep them unless the package says that loading them
 * does nothing else. The Kubernetes client does not say so: with it, the agent would hold the classes of all kinds of
 * objects in memory, which it uses none of.
 */
function withoutUnusedModules(packageName: string): Plugin {
  const resolved = Symbol(packageName);
  return {
    name: 'without-unused-modules',
    setup(build) {
      build.onResolve({ filter: /^[.@]/ }, async ({ path, pluginData, ...from }) => {
        const isOfPackage =
          path === packageName || (path.startsWith('.') && from.importer.includes(`/${packageName}/dist/`));
        if (!isOfPackage || pluginData === resolved) return undefined;
        const { kind, importer, resolveDir } = from;
        const found = await build.resolve(path, { kind, importer, resolveDir, pluginData: resolved });
        return { ...found, sideEffects: false };
      });
    },
  };
}
