import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hostArchitecture } from '../../images/architecture.ts';
import { type ImageDefaults, imageLayer, ociImage } from '../../images/oci-image.ts';
import type { TarEntry } from '../../images/tar.ts';
import { buildGuestPrograms, GUEST_PROGRAMS } from '../guest-programs/build.ts';
import { cachedAsset, contentKey } from '../vm/cache.ts';
import type { ImageTar } from '../vm/image-import.ts';
import { printProgress, type Progress } from '../vm/progress.ts';
import { readBusybox } from './busybox.ts';
import { PAUSE_IMAGE, TOOLBOX_IMAGE } from './names.ts';
import { toolboxLayer } from './toolbox.ts';

const CONTAINER_PATH = '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Builds the container images of the tests, without an engine and without a registry: OCI layouts as tars in the
 * cache directory, built again when their content changes. The same content gives the same bytes.
 *
 * @throws Error naming the package to install if busybox or the C compiler is missing
 */
export async function buildTestImages(progress: Progress = printProgress): Promise<readonly ImageTar[]> {
  const paths = await buildGuestPrograms();
  const programs = new Map<string, Uint8Array>();
  for (const name of GUEST_PROGRAMS) programs.set(name, await readFile(paths[name]));
  const pause = await readFile(paths.pause);
  const images = [
    {
      ref: PAUSE_IMAGE,
      tar: imageTar(PAUSE_IMAGE, [{ kind: 'file', path: 'pause', mode: 0o755, content: pause }], {
        entrypoint: ['/pause'],
        path: '/',
      }),
    },
    {
      ref: TOOLBOX_IMAGE,
      tar: imageTar(TOOLBOX_IMAGE, toolboxLayer(await readBusybox(), programs), {
        command: ['/bin/sh'],
        path: CONTAINER_PATH,
      }),
    },
  ];
  const directory = await cachedAsset(
    {
      kind: 'images',
      key: contentKey(images.flatMap(({ ref, tar }) => [ref, tar])),
      title: 'the container images',
      make: async (target) => {
        for (const { ref, tar } of images) await writeFile(join(target, fileName(ref)), tar);
      },
    },
    progress,
  );
  return images.map(({ ref }) => ({ ref, tarPath: join(directory, fileName(ref)) }));
}

function imageTar(ref: string, entries: readonly TarEntry[], defaults: ImageDefaults): Buffer {
  return ociImage(ref, hostArchitecture(), [imageLayer(entries, 'none')], defaults).tar;
}

function fileName(ref: string): string {
  return `${ref.replaceAll(/[^a-z0-9]+/g, '-')}.tar`;
}
