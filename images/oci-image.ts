import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Architecture } from './architecture.ts';
import { tarArchive, type TarEntry } from './tar.ts';

const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar';
const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';
const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
const INDEX_TYPE = 'application/vnd.oci.image.index.v1+json';

/** What a container gets when it names nothing itself. */
export interface ImageDefaults {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly path: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** User and group by number, such as `65532:65532`; root when left out. */
  readonly user?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A layer as it stands in an image. Images may share it. */
export interface Layer {
  readonly content: Buffer;
  readonly mediaType: string;
  /** The digest of the archive before compression. */
  readonly diffId: string;
  /** Bytes of the archive before compression. */
  readonly unpackedBytes: number;
}

export interface OciImage {
  /** The digest of its manifest, by which a registry knows it. */
  readonly digest: string;
  /** An OCI image layout (image-spec 1.1) in a tar. */
  readonly tar: Buffer;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** A layer with the entries in the given order. The same entries give the same bytes. */
export function imageLayer(entries: readonly TarEntry[], compression: 'none' | 'gzip'): Layer {
  const archive = tarArchive(entries);
  const facts = { diffId: digestOf(archive), unpackedBytes: archive.length };
  return compression === 'none'
    ? { ...facts, content: archive, mediaType: LAYER_TYPE }
    : { ...facts, content: gzipSync(archive), mediaType: `${LAYER_TYPE}+gzip` };
}

/**
 * An image as `ctr images import`, `docker load` and `skopeo copy oci-archive:` take it. The same input gives the same
 * bytes.
 *
 * @param ref the whole name with a tag, such as `test.local/pause:1`
 */
export function ociImage(
  ref: string,
  { name: architecture }: Pick<Architecture, 'name'>,
  layers: readonly Layer[],
  defaults: ImageDefaults,
): OciImage {
  const blobs = new Map<string, TarEntry>();
  const add = (mediaType: string, content: Buffer): Descriptor => {
    const digest = digestOf(content);
    const path = `blobs/${digest.replace(':', '/')}`;
    blobs.set(path, { kind: 'file', path, mode: 0o644, content });
    return { mediaType, digest, size: content.length };
  };
  const layerDescriptors = layers.map(({ mediaType, content }) => add(mediaType, content));
  const config = add(
    CONFIG_TYPE,
    json({
      architecture,
      os: 'linux',
      config: configOf(defaults),
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    }),
  );
  const manifest = add(
    MANIFEST_TYPE,
    json({ schemaVersion: 2, mediaType: MANIFEST_TYPE, config, layers: layerDescriptors }),
  );
  const index = {
    schemaVersion: 2,
    mediaType: INDEX_TYPE,
    manifests: [
      {
        ...manifest,
        platform: { architecture, os: 'linux' },
        annotations: {
          'io.containerd.image.name': ref,
          'org.opencontainers.image.ref.name': ref.slice(ref.lastIndexOf(':') + 1),
        },
      },
    ],
  };
  const tar = tarArchive([
    { kind: 'file', path: 'oci-layout', mode: 0o644, content: json({ imageLayoutVersion: '1.0.0' }) },
    { kind: 'file', path: 'index.json', mode: 0o644, content: json(index) },
    { kind: 'directory', path: 'blobs', mode: 0o755 },
    { kind: 'directory', path: 'blobs/sha256', mode: 0o755 },
    ...blobs.values(),
  ]);
  return { digest: manifest.digest, tar };
}

function configOf({ entrypoint, command, path, environment = {}, user, labels }: ImageDefaults): object {
  const variables = Object.entries({ PATH: path, ...environment });
  return {
    ...(user !== undefined && { User: user }),
    Env: variables.map(([name, value]) => `${name}=${value}`),
    ...(entrypoint && { Entrypoint: entrypoint }),
    ...(command && { Cmd: command }),
    WorkingDir: '/',
    ...(labels && { Labels: labels }),
  };
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
