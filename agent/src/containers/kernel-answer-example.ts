import { CONTAINER_LAYOUT } from '../kernel/gen/abi.ts';
import type { KernelMaps } from '../kernel/maps.ts';

const { offsets: OFFSETS } = CONTAINER_LAYOUT;

function u32(value: number): Uint8Array {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(value);
  return key;
}

/** For tests: what the kernel program finds for a cgroup, computed as bpf/cgroup.h does. */
export function containerOf(maps: KernelMaps, cgroupId: bigint) {
  const likely = Number(cgroupId & BigInt(maps.containers.maxEntries - 1));
  const quick = slotContent(maps, likely);
  if (quick.cgroup === cgroupId) return quick;
  const key = Buffer.alloc(8);
  key.writeBigUInt64LE(cgroupId);
  const value = maps.cgroups.lookup(key);
  return value === undefined ? undefined : slotContent(maps, Buffer.from(value).readUInt32LE());
}

/** For tests: the slot that a mount namespace leads to. */
export function slotOfNamespace(maps: KernelMaps, mountNamespace: number): number | undefined {
  const value = maps.mountNamespaces.lookup(u32(mountNamespace));
  return value === undefined ? undefined : Buffer.from(value).readUInt32LE();
}

function slotContent(maps: KernelMaps, slot: number) {
  const value = Buffer.from(maps.containers.lookup(u32(slot)) ?? new Uint8Array(CONTAINER_LAYOUT.size));
  return {
    cgroup: value.readBigUInt64LE(OFFSETS.cgroup),
    mountNamespace: value.readUInt32LE(OFFSETS.mount_namespace),
    policy: value.readUInt32LE(OFFSETS.policy),
    flags: value.readUInt32LE(OFFSETS.flags),
    generation: value.readUInt32LE(OFFSETS.generation),
    initPid: value.readUInt32LE(OFFSETS.init_pid),
    slot,
  };
}
