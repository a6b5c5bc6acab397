#!/bin/bash
# with-setup.sh COMMAND...: makes this checkout able to run COMMAND, then becomes it.
#
# Installs the Debian packages and npm packages that are missing and builds the native parts; says each step in a line
# and skips what is done. Guests (QEMU, kernels, the disk) are made by the tests that need them. Needs a Debian-like
# machine, root for installing, and any npm; the commands run on the Node that the npm packages bring.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly NEEDED_DISK_MIB=6144
readonly CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/runtime-enforcer
readonly NODE_MODULES_STAMP=node_modules/.package-lock.json

step() { printf '· %s\n' "$*" >&2; }

fail() { # fail WHAT REMEDY
  printf 'cannot go on: %s\nrepair it with: %s\n' "$1" "$2" >&2
  exit 1
}

# One line each: the file that shows that a package is there, and the package.
needed_packages() {
  cat << 'END'
/usr/bin/clang clang
/usr/bin/clang-format clang-format
/usr/bin/llvm-strip llvm
/usr/sbin/bpftool bpftool
/usr/include/bpf/libbpf.h libbpf-dev
/usr/include/libelf.h libelf-dev
/usr/include/zlib.h zlib1g-dev
/usr/bin/g++ g++
/usr/bin/gcc gcc
/usr/bin/make make
/usr/bin/busybox busybox-static
/usr/bin/mmdebstrap mmdebstrap
/usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring
/usr/sbin/mke2fs e2fsprogs
/usr/sbin/depmod kmod
/usr/bin/xz xz-utils
/usr/bin/zstd zstd
/usr/bin/setpriv util-linux
/usr/bin/unzip unzip
END
}

missing_packages() {
  local file package
  while read -r file package; do
    # On a merged /usr both names are the same file; elsewhere some of these live outside /usr.
    [ -e "$file" ] || [ -e "${file#/usr}" ] || printf '%s ' "$package"
  done < <(needed_packages)
}

check_disk() {
  mkdir -p "$CACHE"
  local free
  free=$(df -Pm "$CACHE" | awk 'NR == 2 { print $4 }')
  # What fills the space is already there when the guests are.
  if [ "$free" -lt "$NEEDED_DISK_MIB" ] && ! compgen -G "$CACHE/disk-*" > /dev/null; then
    fail "$CACHE has $free MiB left, the kernels and guests need $NEEDED_DISK_MIB" \
      "free some space, or name another place: export XDG_CACHE_HOME=/somewhere"
  fi
}

install_packages() {
  local missing
  missing=$(missing_packages)
  missing=${missing% }
  [ -n "$missing" ] || return 0
  command -v apt-get > /dev/null ||
    fail "apt-get is missing, so this is no Debian-like machine; needed are: $missing" "install these packages by hand"
  [ "$(id -u)" = 0 ] || fail "only root can install packages" "sudo apt-get install -y $missing"
  step "installing Debian packages: $missing"
  # shellcheck disable=SC2086 # a list of words
  try_install $missing 2> /dev/null && return 0
  step "fetching Debian's package lists"
  apt-get -qq update || fail "Debian's package lists cannot be fetched" "apt-get update"
  # shellcheck disable=SC2086 # a list of words
  try_install $missing || fail "packages cannot be installed" "apt-get install -y $missing"
}

try_install() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" > "$CACHE/apt.log" 2>&1 && return 0
  tail -n 5 "$CACHE/apt.log" >&2
  return 1
}

install_node_modules() {
  [ "$NODE_MODULES_STAMP" -nt package-lock.json ] && [ -x node_modules/node/bin/node ] && return 0
  command -v npm > /dev/null || fail "npm is missing" "apt-get install -y npm"
  step "installing npm packages"
  npm ci --no-progress --loglevel=error > "$CACHE/npm.log" 2>&1 || {
    tail -n 20 "$CACHE/npm.log" >&2
    fail "npm packages cannot be installed" "npm ci"
  }
  touch "$NODE_MODULES_STAMP"
}

build() { # build DIRECTORY WHAT [TARGET...]
  local directory=$1 what=$2
  shift 2
  [ -f "$directory/Makefile" ] || fail "$directory/Makefile is missing" "git restore $directory"
  make --question --no-print-directory -s -C "$directory" "$@" > /dev/null 2>&1 && return 0
  step "building $what"
  make --no-print-directory --jobs="$(nproc)" -s -C "$directory" "$@" || fail "$what cannot be built" "make -C $directory $*"
}

# Two commands that are started in a fresh checkout build the same files: one after the other.
lock_checkout() {
  exec 9< .
  flock --nonblock 9 && return 0
  step "waiting for another command that sets up this checkout"
  flock 9
}

unlock_checkout() { exec 9<&-; }

[ $# -gt 0 ] || fail "no command given" "$0 COMMAND..."
lock_checkout
check_disk
install_packages
install_node_modules
export PATH="$PWD/node_modules/.bin:$PATH"
build bpf "the kernel program" all variants
build agent/native "the native addon" all tests
build test/guest-programs "the programs for guests"
unlock_checkout
exec "$@"
