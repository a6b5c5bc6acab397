#!/bin/busybox sh
# First program of a guest: finds the disk, moves what this run brought along into memory of the real root, and goes there.
/bin/busybox --install -s /bin
export PATH=/bin

die() {
  echo "guest: $*" > /dev/console
  poweroff -nf
}

mkdir -p /proc /sys /dev /newroot
mount -t devtmpfs devtmpfs /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
modprobe -q virtio_pci
modprobe -q virtio_blk
modprobe -q ext4
tries=0
while [ ! -b /dev/vda ]; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || die "no disk: virtio_blk did not find /dev/vda"
  usleep 50000
done
mount -t ext4 -o noatime,noinit_itable /dev/vda /newroot || die "cannot mount the disk"
mount -t tmpfs -o mode=0755 run /newroot/run
mv /guest /newroot/run/guest
mkdir -p /newroot/run/payload
[ ! -d /payload ] || mount -t tmpfs -o mode=0755,size=90% payload /newroot/run/payload
[ ! -d /payload ] || mv /payload/* /newroot/run/payload/
mount -t tmpfs -o mode=0755 modules /newroot/usr/lib/modules
mv /lib/modules/* /newroot/usr/lib/modules/
umount /proc /sys
mount -o move /dev /newroot/dev
exec switch_root /newroot /run/guest/start
