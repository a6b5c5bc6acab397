import { createHash } from 'node:crypto';
import { tarArchive, type TarEntry } from './tar.ts';

/** What a container gets when it names nothing itself. */
export interface ImageDefaults {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly path: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/**
 * An OCI image layout (image-spec 1.1) of one uncompressed layer for x86-64, as a tar that
 * `ctr images import` takes. The same input gives the same bytes.
 *
 * @param ref the whole name with a tag, such as `test.local/pause:1`
 */
export function ociImageTar(ref: string, layer: readonly TarEntry[], defaults: ImageDefaults): Buffer {
  const blobs: TarEntry[] = [];
  const add = (mediaType: string, content: Buffer): Descriptor => {
    const hex = createHash('sha256').update(content).digest('hex');
    blobs.push({ kind: 'file', path: `blobs/sha256/${hex}`, mode: 0o644, content });
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const addJson = (mediaType: string, value: unknown): Descriptor => add(mediaType, json(value));

  const layerBlob = add('application/vnd.oci.image.layer.v1.tar', tarArchive(layer));
  const config = addJson('application/vnd.oci.image.config.v1+json', {
    architecture: 'amd64',
    os: 'linux',
    config: {
      Env: [`PATH=${defaults.path}`],
      WorkingDir: '/',
      ...(defaults.entrypoint && { Entrypoint: defaults.entrypoint }),
      ...(defaults.command && { Cmd: defaults.command }),
    },
    rootfs: { type: 'layers', diff_ids: [layerBlob.digest] },
  });
  const manifestType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = addJson(manifestType, {
    schemaVersion: 2,
    mediaType: manifestType,
    config,
    layers: [layerBlob],
  });
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        ...manifest,
        platform: { architecture: 'amd64', os: 'linux' },
        annotations: {
          'io.containerd.image.name': ref,
          'org.opencontainers.image.ref.name': ref.slice(ref.lastIndexOf(':') + 1),
        },
      },
    ],
  };
  return tarArchive([
    { kind: 'file', path: 'oci-layout', mode: 0o644, content: json({ imageLayoutVersion: '1.0.0' }) },
    { kind: 'file', path: 'index.json', mode: 0o644, content: json(index) },
    { kind: 'directory', path: 'blobs', mode: 0o755 },
    { kind: 'directory', path: 'blobs/sha256', mode: 0o755 },
    ...blobs,
  ]);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
