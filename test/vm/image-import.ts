import { copyFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runHostCommand } from './host-command.ts';

/** A container image as an OCI layout in a tar, and the name it carries. */
export interface ImageTar {
  ref: string;
  tarPath: string;
}

/**
 * Runs in mount and process namespaces of its own, so that nothing is left when it ends. Importing here takes
 * milliseconds per image; inside a guest it takes seconds.
 */
const IMPORT_SCRIPT = `
set -e
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs run "$root/run"
chroot "$root" /usr/bin/containerd --log-level error > "$root/import/containerd.log" 2>&1 &
tries=0
until chroot "$root" ctr version > /dev/null 2>&1; do
  tries=$((tries + 1))
  if [ $tries -gt 100 ]; then echo 'containerd does not answer:' >&2; tail -n 20 "$root/import/containerd.log" >&2; exit 1; fi
  sleep 0.1
done
for tar in "$root"/import/*.tar; do
  chroot "$root" ctr -n k8s.io images import --local --label io.cri-containerd.pinned=pinned "/import/\${tar##*/}" > /dev/null
done
chroot "$root" ctr -n k8s.io images ls -q
kill $!
wait $! || true
`;

/**
 * Imports images into the containerd of a root file system, for CRI and with their layers unpacked.
 *
 * @throws Error naming an image that is missing afterwards
 */
export async function importImages(root: string, images: readonly ImageTar[]): Promise<void> {
  const staging = join(root, 'import');
  await mkdir(staging);
  for (const [index, image] of images.entries()) await copyFile(image.tarPath, join(staging, `${index}.tar`));
  const listed = await runHostCommand([
    'unshare',
    ...['--mount', '--pid', '--net', '--fork', '--kill-child'],
    ...['sh', '-c', IMPORT_SCRIPT, 'import', root],
  ]);
  await rm(staging, { recursive: true });
  const present = new Set(listed.split('\n'));
  for (const { ref } of images) {
    if (!present.has(ref))
      throw new Error(`image ${ref} is not in containerd's store after its import: ${listed}`);
  }
}
