import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Descriptor {
  readonly digest: string;
  readonly size: number;
}

/** An image as a container would see it. */
export interface UnpackedImage {
  /** Where its files are. */
  readonly root: string;
  /** Its whole name with a tag. */
  readonly ref: string;
  readonly digest: string;
  readonly architecture: string;
  readonly config: {
    readonly User?: string;
    readonly Entrypoint?: readonly string[];
    readonly Env: readonly string[];
  };
}

/**
 * Follows the digests of an OCI layout from its index to its layers, and unpacks these.
 *
 * @param directory gets a directory for the image
 * @throws Error for a digest or a size that does not hold
 */
export function unpackImage(tarPath: string, directory: string): UnpackedImage {
  const layout = mkdtempSync(join(directory, 'image-'));
  execFileSync('tar', ['-xf', tarPath, '-C', layout]);
  const blob = ({ digest, size }: Descriptor): Buffer => {
    const content = readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
    if (digestOf(content) !== digest || content.length !== size) {
      throw new Error(`${tarPath}: the content of ${digest} is not what it is said to be`);
    }
    return content;
  };
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as {
    manifests: [Descriptor & { annotations: Record<string, string> }];
  };
  const manifest = JSON.parse(blob(manifests[0]).toString()) as {
    config: Descriptor;
    layers: (Descriptor & { mediaType: string })[];
  };
  const config = JSON.parse(blob(manifest.config).toString()) as {
    architecture: string;
    config: UnpackedImage['config'];
    rootfs: { diff_ids: string[] };
  };
  const root = join(layout, 'root');
  mkdirSync(root);
  for (const [index, layer] of manifest.layers.entries()) {
    const isCompressed = layer.mediaType.endsWith('+gzip');
    const archive = isCompressed
      ? execFileSync('gzip', ['-dc'], { input: blob(layer), maxBuffer: Infinity })
      : blob(layer);
    if (digestOf(archive) !== config.rootfs.diff_ids[index]) {
      throw new Error(`${tarPath}: layer ${index} is not the one that the configuration names`);
    }
    execFileSync('tar', ['-xpf', '-', '-C', root], { input: archive });
  }
  return {
    ...{ root, digest: manifests[0].digest, architecture: config.architecture, config: config.config },
    ref: manifests[0].annotations['io.containerd.image.name'] ?? '',
  };
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
