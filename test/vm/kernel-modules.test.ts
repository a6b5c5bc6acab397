import { describe, expect, it } from 'vitest';
import { moduleClosure } from './kernel-modules.ts';

const MODULES_DEP = `kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio_ring.ko.xz kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/virtio/virtio_ring.ko.xz:
kernel/drivers/virtio/virtio.ko.xz:
kernel/fs/overlayfs/overlay.ko.xz:
kernel/net/some-dashed.ko:
`;

describe('moduleClosure', () => {
  it('takes the modules and what they depend on, once each', () => {
    expect(moduleClosure(MODULES_DEP, ['virtio_blk', 'virtio_ring'])).toEqual([
      'kernel/drivers/block/virtio_blk.ko.xz',
      'kernel/drivers/virtio/virtio.ko.xz',
      'kernel/drivers/virtio/virtio_ring.ko.xz',
    ]);
  });

  it('takes dashes and underscores for the same, and leaves out what is built in', () => {
    expect(moduleClosure(MODULES_DEP, ['some_dashed', 'ext4'])).toEqual(['kernel/net/some-dashed.ko']);
  });
});
