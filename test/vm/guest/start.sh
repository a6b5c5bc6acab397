#!/run/guest/busybox sh
# Process 1 of a guest after the initramfs: mounts what a node has, runs the command of this run with its output on the
# second serial port, says how it ended and powers off. /run/guest/settings comes from the host.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
busybox() { /run/guest/busybox "$@"; }
mkdir() { busybox mkdir "$@"; }
mount() { busybox mount "$@"; }
. /run/guest/settings
OUTPUT=/dev/ttyS1

die() {
  echo "guest: $*" > /dev/console
  busybox poweroff -nf
}
attach() {
  mkdir -p "$4" && mount -t "$1" -o "$2" "$3" "$4" || die "cannot mount $1 at $4"
}
cgroup_v1() {
  attach cgroup "nosuid,nodev,noexec,$1" cgroup "/sys/fs/cgroup/$2"
}

attach proc nosuid,nodev,noexec proc /proc
attach sysfs nosuid,nodev,noexec sysfs /sys
attach devpts gid=5,mode=620,ptmxmode=000 devpts /dev/pts
attach tmpfs nosuid,nodev tmpfs /dev/shm
attach tmpfs nosuid,nodev,mode=1777 tmpfs /tmp
attach mqueue nosuid,nodev,noexec mqueue /dev/mqueue
attach bpf mode=700 bpf /sys/fs/bpf
attach securityfs nosuid,nodev,noexec securityfs /sys/kernel/security
attach debugfs nosuid,nodev,noexec debugfs /sys/kernel/debug
attach tracefs nosuid,nodev,noexec tracefs /sys/kernel/tracing
if [ "$CGROUPS" = hybrid ]; then
  # systemd's hybrid layout: the controllers in version 1, version 2 beside them without any.
  attach tmpfs nosuid,nodev,noexec,mode=755 tmpfs /sys/fs/cgroup
  attach cgroup2 nosuid,nodev,noexec cgroup2 /sys/fs/cgroup/unified
  cgroup_v1 none,name=systemd systemd
  cgroup_v1 memory memory
  cgroup_v1 cpu,cpuacct cpu,cpuacct
  ln -s cpu,cpuacct /sys/fs/cgroup/cpu
  ln -s cpu,cpuacct /sys/fs/cgroup/cpuacct
  for controller in blkio cpuset devices freezer pids; do cgroup_v1 $controller $controller; done
else
  attach cgroup2 nosuid,nodev,noexec cgroup2 /sys/fs/cgroup
fi
mount --make-rshared /
modprobe overlay || die "cannot load the module overlay"
busybox ip link set lo up || die "cannot bring up the loopback interface"
busybox hostname guest
echo 1 > /proc/sys/kernel/panic_on_oops
ulimit -l unlimited
ulimit -n 1048576
busybox stty -F $OUTPUT 115200 raw -echo

if [ "$CONTAINERD" = yes ]; then
  # Bridges and netfilter are there when a pod network asks for them; containerd itself needs nothing of it.
  echo 1 > /proc/sys/net/ipv4/ip_forward
  /usr/bin/containerd --config /run/guest/containerd.toml > /var/log/containerd.log 2>&1 &
  echo $! > /run/containerd.pid
  tries=0
  until [ -S /run/containerd/containerd.sock ] && [ -S /run/nri/nri.sock ] && ctr version > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries -gt 600 ]; then
      tail -n 40 /var/log/containerd.log > /dev/console
      die "containerd does not answer"
    fi
    busybox usleep 100000
  done
fi

echo "$MARK ready $(busybox cut -d ' ' -f 1 /proc/uptime)" > $OUTPUT
busybox sh /run/guest/command < /dev/null > $OUTPUT 2>&1
code=$?
if [ "$CONTAINERD" = yes ] && [ $code -ne 0 ]; then
  echo "the last warnings and errors in containerd's log:" > /dev/console
  grep -E 'level=(warn|error|fatal)' /var/log/containerd.log | tail -n 20 > /dev/console
fi
# Whoever still holds the serial port would delay its last bytes.
kill -9 -1
printf '\n%s exit %d\n' "$MARK" $code > $OUTPUT
busybox poweroff -nf
