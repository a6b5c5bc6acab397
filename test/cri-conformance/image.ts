import { hostArchitecture } from '../../images/architecture.ts';
import { imageLayer, ociImage } from '../../images/oci-image.ts';
import type { TarEntry } from '../../images/tar.ts';
import { BUSYBOX, readBusybox } from '../images/busybox.ts';
import { runHostCommand } from '../vm/host-command.ts';
import { CONFORMANCE_IMAGE } from './names.ts';

const DIRECTORIES = ['bin', 'dev', 'etc', 'proc', 'root', 'sys', 'tmp', 'usr', 'usr/bin', 'var', 'var/run'];

/**
 * The image that critest starts its containers from, as an OCI layout in a tar: every applet of busybox.
 * @throws Error naming the package to install if busybox is missing
 */
export async function conformanceImage(): Promise<Buffer> {
  const busybox = await readBusybox();
  const applets = (await runHostCommand([BUSYBOX, '--list']))
    .split('\n')
    .filter((name) => name !== '' && name !== 'busybox');
  const file = (path: string, mode: number, content: Uint8Array): TarEntry => ({
    kind: 'file',
    path,
    mode,
    content,
  });
  const entries: TarEntry[] = [
    ...DIRECTORIES.map((path): TarEntry => ({ kind: 'directory', path, mode: 0o755 })),
    file(
      'etc/passwd',
      0o644,
      Buffer.from('root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n'),
    ),
    file('etc/group', 0o644, Buffer.from('root:x:0:\nnogroup:x:65534:\n')),
    file('bin/busybox', 0o755, busybox),
    ...applets.map((name): TarEntry => ({ kind: 'hardlink', path: `bin/${name}`, target: 'bin/busybox' })),
  ];
  const layer = imageLayer(entries, 'none');
  return ociImage(CONFORMANCE_IMAGE, hostArchitecture(), [layer], { command: ['/bin/sh'], path: '/bin' }).tar;
}
