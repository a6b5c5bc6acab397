import { copyFile, mkdir, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';

const REPOSITORY = join(import.meta.dirname, '..');

/** Lets bundled CommonJS modules find Node's own modules. */
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

/** Its module for `import` loads gRPC at run time in a way that no bundler sees; the one for `require` does not. */
const OTLP_GRPC = '@opentelemetry/otlp-grpc-exporter-base';
const KUBERNETES_CLIENT = '@kubernetes/client-node';
const PACKAGE_DIRECTORY = /^.*node_modules\/((?:@[^/]+\/)?[^/]+)\//;

/** A program that runs in a container. */
export interface Program {
  /** Also of its image, and of the command in it. */
  readonly name: string;
  /** Source files by the names of the bundled ones without `.mjs`. The program itself has the program's name. */
  readonly entryPoints: Readonly<Record<string, string>>;
  /** What make has built, and the program finds beside its bundle. */
  readonly builtFiles: readonly string[];
}

/**
 * Bundles a program into a directory of nothing else: `NAME.mjs`, files with what only some commands need, so that the
 * others neither read it nor hold it in memory, and what make has built.
 *
 * @returns the directories of the npm packages that the bundle holds a part of
 */
export async function bundleProgram(program: Program, directory: string): Promise<readonly string[]> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const { metafile } = await build({ ...bundleOptions(program, directory), metafile: true });
  for (const file of program.builtFiles) await copyFile(file, join(directory, basename(file)));
  return bundledPackages(metafile).map((path) => join(REPOSITORY, path));
}

/** How esbuild bundles a program into a directory. */
export function bundleOptions({ entryPoints }: Program, directory: string): BuildOptions {
  return {
    entryPoints,
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    absWorkingDir: REPOSITORY,
    tsconfig: join(REPOSITORY, 'tsconfig.json'),
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    external: ['*.node'],
    alias: {
      [OTLP_GRPC]: createRequire(join(REPOSITORY, 'telemetry/package.json')).resolve(OTLP_GRPC),
    },
    plugins: [withoutUnusedModules(KUBERNETES_CLIENT)],
    banner: { js: BANNER },
    logLevel: 'warning',
  };
}

/** The directories of the npm packages of which a bundle holds a part, in order, from where esbuild worked. */
export function bundledPackages({ outputs }: Metafile): readonly string[] {
  const packages = new Set<string>();
  for (const { inputs } of Object.values(outputs)) {
    for (const [input, { bytesInOutput }] of Object.entries(inputs)) {
      const directory = PACKAGE_DIRECTORY.exec(input)?.[0];
      if (bytesInOutput > 0 && directory !== undefined) packages.add(directory);
    }
  }
  return [...packages].toSorted();
}

/**
 * Leaves out a package's modules that nothing is used of. Bundlers keep them unless the package says that loading them
 * does nothing else. The Kubernetes client does not say so: with it, a program would hold the classes of all kinds of
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
