import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { printProgress, type Progress } from '../test/vm/progress.ts';
import type { Architecture } from './architecture.ts';
import { baseLayer, CA_CERTIFICATES, NODE_IN_IMAGE, nodeLayer } from './base-layer.ts';
import { billOfMaterials } from './bill-of-materials.ts';
import { debianPackages, type UnpackedPackages } from './debian-packages.ts';
import { nodeRuntime, NODE_ENVIRONMENT } from './node-runtime.ts';
import { type ImageDefaults, imageLayer, ociImage } from './oci-image.ts';
import { packageFiles, packagesOf } from './package-files.ts';
import { bundleProgram, type Program } from './program-bundle.ts';
import { programInImage, programLayer } from './program-layer.ts';
import type { ImageProgram } from './programs.ts';
import { sharedLibraries } from './shared-libraries.ts';
import { withParents } from './tar.ts';

const PATH_IN_IMAGE = '/usr/local/bin:/usr/bin:/bin';
/** Native code that Node loads. */
const ADDON_ENDING = '.node';

export interface BuildOptions {
  readonly architecture: Architecture;
  /** What the images' names begin with, such as `registry.example/runtime-enforcer`. */
  readonly repository: string;
  /** Where the images go. */
  readonly directory: string;
  readonly progress?: Progress;
}

export interface BuiltImage {
  readonly name: string;
  /** Its whole name with a tag. */
  readonly ref: string;
  readonly digest: string;
  /** An OCI layout. */
  readonly tarPath: string;
  /** What it holds, as CycloneDX. */
  readonly billPath: string;
  readonly unpackedBytes: number;
  readonly compressedBytes: number;
}

/**
 * Builds images, without a container engine: Node, the libraries that it loads and the bundled program, and nothing
 * else that runs. The same sources give the same digests. Needs the network until what is downloaded is in the cache.
 *
 * @throws Error when a file is missing that make builds, or is for another architecture
 */
export async function buildImages(
  programs: readonly ImageProgram[],
  { architecture, repository, directory, progress = printProgress }: BuildOptions,
): Promise<readonly BuiltImage[]> {
  await mkdir(directory, { recursive: true });
  const packages = await debianPackages(architecture, progress);
  const node = await nodeRuntime(architecture, progress);
  const base = await baseLayer(node, architecture, packages);
  const parts = [];
  for (const image of programs) {
    progress(`bundling the ${image.program.name}`);
    const part = await programPart(image.program, architecture, packages, base.packages, node.version);
    parts.push({ ...image, ...part });
  }
  const shared = [imageLayer(base.entries, 'gzip'), imageLayer(await nodeLayer(node), 'gzip')];
  const basePaths = new Set(base.entries.map(({ path }) => path));
  const built: BuiltImage[] = [];
  for (const { program, description, userId, entries, bill } of parts) {
    const own = withParents(entries).filter(({ path }) => !basePaths.has(path));
    const layers = [...shared, imageLayer(own, 'gzip')];
    const ref = `${repository}/${program.name}:${manifest.version}`;
    const { digest, tar } = ociImage(ref, architecture, layers, {
      ...imageDefaults(program, userId),
      labels: {
        'org.opencontainers.image.title': `runtime-enforcer-${program.name}`,
        'org.opencontainers.image.description': description,
        'org.opencontainers.image.version': manifest.version,
        'org.opencontainers.image.licenses': manifest.license,
      },
    });
    const file = join(directory, `${program.name}_${manifest.version}_linux-${architecture.name}`);
    await writeFile(`${file}.oci.tar`, tar);
    await writeFile(`${file}.cdx.json`, bill);
    const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
    built.push({
      ...{ name: program.name, ref, digest, tarPath: `${file}.oci.tar`, billPath: `${file}.cdx.json` },
      unpackedBytes: sum(layers.map((layer) => layer.unpackedBytes)),
      compressedBytes: sum(layers.map(({ content }) => content.length)),
    });
  }
  return built;
}

function imageDefaults(program: Program, userId: number): ImageDefaults {
  return {
    entrypoint: [NODE_IN_IMAGE, programInImage(program)],
    path: PATH_IN_IMAGE,
    environment: { SSL_CERT_FILE: CA_CERTIFICATES, ...NODE_ENVIRONMENT },
    user: `${userId}:${userId}`,
  };
}

async function programPart(
  program: Program,
  architecture: Architecture,
  packages: UnpackedPackages,
  basePackages: readonly string[],
  nodeVersion: string,
) {
  const bundle = await mkdtemp(join(tmpdir(), 'runtime-enforcer-bundle-'));
  try {
    const npmPackages = await bundleProgram(program, bundle);
    const addons = program.builtFiles.filter((file) => file.endsWith(ADDON_ENDING));
    const libraries = await sharedLibraries(addons, architecture, packages);
    const debian = [...new Set([...basePackages, ...packagesOf(libraries)])].toSorted();
    const bill = await billOfMaterials(program.name, manifest.version, {
      debian: packages.packages.filter(({ name }) => debian.includes(name)),
      architecture: architecture.name,
      nodeVersion,
      npmPackages,
    });
    const entries = [
      ...(await packageFiles(libraries, packages)),
      ...(await programLayer(program, bundle, npmPackages, bill)),
    ];
    return { entries, bill };
  } finally {
    await rm(bundle, { recursive: true, force: true });
  }
}
