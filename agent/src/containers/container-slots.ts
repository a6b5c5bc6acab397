import type { CountFailure } from '../kernel/failures.ts';
import { CONTAINER_COUNTERS_LAYOUT, CONTAINER_LAYOUT, ContainerFlag } from '../kernel/gen/abi.ts';
import type { GracePeriod } from '../kernel/grace-period.ts';
import type { KernelMaps } from '../kernel/maps.ts';
import type { MapEntries } from '../kernel/native.ts';

/** What the program is to know of a container. */
export interface SlotContent {
  readonly cgroupId: bigint;
  /** Inode number; 0: not known, then it is not compared. */
  readonly mountNamespace: number;
  /** 0: no policy. */
  readonly policyId: number;
  readonly learn: boolean;
  /** First process in the host's pid namespace; 0: not known. */
  readonly initPid: number;
}

/** A container's place in the kernel. Together with the generation it is unique on the node. */
export interface Slot extends SlotContent {
  readonly slot: number;
  readonly generation: number;
}

/** All slots are taken. */
export class SlotsExhaustedError extends Error {
  override readonly name = 'SlotsExhaustedError';

  constructor(capacity: number) {
    super(`all ${capacity} places for containers of this node are taken; no more containers can be bound`);
  }
}

/** The places of containers in the kernel's maps. Every method but `release` takes effect before it returns. */
export interface ContainerSlots {
  /** Reads what an agent before left, by cgroup. Those that nobody takes over are to be released. */
  adopt(): Promise<readonly Slot[]>;
  /**
   * Binds a cgroup. Where it is bound already, the program finds the old content or the new one and never none; the
   * old slot is then to be released. Throws a {@link SlotsExhaustedError} or a NativeError.
   */
  bind(content: SlotContent): Slot;
  /** Takes a slot out of the maps, unless another one has replaced it there. Resolves when no program can hold it. */
  release(slot: Slot): Promise<void>;
  /** Whether the maps still say of the slot what was written there. */
  holds(slot: Slot): boolean;
  /** Takes out what the maps hold and no slot that is in use accounts for. Returns how much that was. */
  removeStrays(): Promise<number>;
  readonly free: number;
}

const { offsets: OFFSETS, size: SIZE } = CONTAINER_LAYOUT;

export function createContainerSlots(parts: {
  readonly maps: Pick<KernelMaps, 'containers' | 'containerCounters' | 'cgroups' | 'mountNamespaces'>;
  readonly grace: GracePeriod;
  readonly hostMountNamespace: number;
  readonly countFailure: CountFailure;
}): ContainerSlots {
  const { maps, grace, hostMountNamespace } = parts;
  const capacity = maps.containers.maxEntries;
  const taken = new Set<number>();
  const generations = new Map<number, number>();
  let last = 0;

  /** The program tries the slot of the id's low bits first (bpf/cgroup.h); slot 0 stands for none. */
  const allocate = (cgroupId: bigint): number => {
    const likely = Number(cgroupId & BigInt(capacity - 1));
    if (likely !== 0 && !taken.has(likely)) return likely;
    for (let tried = 1; tried < capacity; tried++) {
      last = last >= capacity - 1 ? 1 : last + 1;
      if (!taken.has(last)) return last;
    }
    throw new SlotsExhaustedError(capacity - 1);
  };

  const contentOf = (slot: Slot, cgroupId: bigint): Uint8Array => {
    const view = new DataView(new ArrayBuffer(SIZE));
    view.setBigUint64(OFFSETS.cgroup, cgroupId, true);
    view.setUint32(OFFSETS.mount_namespace, slot.mountNamespace, true);
    view.setUint32(OFFSETS.policy, slot.policyId, true);
    view.setUint32(OFFSETS.flags, slot.learn ? ContainerFlag.CONTAINER_LEARN : 0, true);
    view.setUint32(OFFSETS.generation, slot.generation, true);
    view.setUint32(OFFSETS.init_pid, slot.initPid, true);
    return new Uint8Array(view.buffer);
  };
  const write = (slot: Slot, cgroupId: bigint): void =>
    maps.containers.update(u32(slot.slot), contentOf(slot, cgroupId));

  const pointsTo = (map: KernelMaps['cgroups'], key: Uint8Array, slot: number): boolean => {
    const value = map.lookup(key);
    return value !== undefined && readU32(value) === slot;
  };

  /**
   * An agent that was killed while it bound or released left a slot that `cgroups` does not name, or a namespace that
   * leads elsewhere. What `cgroups` says counts.
   */
  const repair = (
    slots: ReadonlyMap<number, Slot>,
    adopted: ReadonlyMap<number, Slot>,
    namespaces: MapEntries,
  ): void => {
    const named = new Set<number>();
    for (const slot of adopted.values()) {
      named.add(slot.mountNamespace);
      write(slot, slot.cgroupId);
      if (isOwnNamespace(slot.mountNamespace)) {
        maps.mountNamespaces.update(u32(slot.mountNamespace), u32(slot.slot));
      }
    }
    for (const slot of slots.values()) {
      if (!adopted.has(slot.slot) && slot.cgroupId !== 0n) write(slot, 0n);
    }
    for (let i = 0; i < namespaces.count; i++) {
      const namespace = readU32(namespaces.keys, i * 4);
      if (!named.has(namespace)) maps.mountNamespaces.delete(u32(namespace));
    }
  };

  return {
    get free() {
      return capacity - 1 - taken.size;
    },
    async adopt() {
      const [contents, bound] = await Promise.all([maps.containers.entries(), maps.cgroups.entries()]);
      const view = viewOf(contents.values);
      const slots = new Map<number, Slot>();
      for (let i = 0; i < contents.count; i++) {
        const slot = decodeSlot(view, i * SIZE, readU32(contents.keys, i * 4));
        if (slot.generation !== 0) generations.set(slot.slot, slot.generation);
        slots.set(slot.slot, slot);
      }
      const ids = viewOf(bound.keys);
      const adopted = new Map<number, Slot>();
      for (let i = 0; i < bound.count; i++) {
        const found = slots.get(readU32(bound.values, i * 4));
        if (found === undefined) continue;
        taken.add(found.slot);
        adopted.set(found.slot, { ...found, cgroupId: ids.getBigUint64(i * 8, true) });
      }
      repair(slots, adopted, await maps.mountNamespaces.entries());
      return [...adopted.values()];
    },
    holds(slot) {
      const value = maps.containers.lookup(u32(slot.slot));
      return (
        value !== undefined &&
        sameBytes(value, contentOf(slot, slot.cgroupId)) &&
        pointsTo(maps.cgroups, u64(slot.cgroupId), slot.slot)
      );
    },
    async removeStrays() {
      const bound = await maps.cgroups.entries();
      const ids = viewOf(bound.keys);
      let removed = 0;
      for (let i = 0; i < bound.count; i++) {
        const number = readU32(bound.values, i * 4);
        const cgroup = u64(ids.getBigUint64(i * 8, true));
        if (taken.has(number) || !pointsTo(maps.cgroups, cgroup, number)) continue;
        maps.cgroups.delete(cgroup);
        removed++;
      }
      return removed;
    },
    bind(content) {
      const number = allocate(content.cgroupId);
      const generation = ((generations.get(number) ?? 0) + 1) >>> 0 || 1;
      const slot: Slot = { ...content, slot: number, generation };
      const cgroup = u64(content.cgroupId);
      const namespace = isOwnNamespace(content.mountNamespace) ? u32(content.mountNamespace) : undefined;
      const before = {
        cgroup: maps.cgroups.lookup(cgroup),
        namespace: namespace && maps.mountNamespaces.lookup(namespace),
      };
      taken.add(number);
      generations.set(number, generation);
      try {
        maps.containerCounters.update(u32(number), new Uint8Array(CONTAINER_COUNTERS_LAYOUT.size));
        // Whole before the program can find it: it looks at the slot's cgroup first.
        write(slot, 0n);
        if (namespace !== undefined) maps.mountNamespaces.update(namespace, u32(number));
        maps.cgroups.update(cgroup, u32(number));
        write(slot, content.cgroupId);
      } catch (error) {
        // What was bound before stays so.
        if (before.cgroup !== undefined) maps.cgroups.update(cgroup, before.cgroup);
        if (namespace !== undefined && before.namespace !== undefined) {
          maps.mountNamespaces.update(namespace, before.namespace);
        }
        this.release(slot).catch(() => parts.countFailure('container_unbind'));
        throw error;
      }
      return slot;
    },
    async release(slot) {
      // Its other fields stay, for a program that found it just before.
      write(slot, 0n);
      const cgroup = u64(slot.cgroupId);
      if (pointsTo(maps.cgroups, cgroup, slot.slot)) maps.cgroups.delete(cgroup);
      const namespace = u32(slot.mountNamespace);
      if (isOwnNamespace(slot.mountNamespace) && pointsTo(maps.mountNamespaces, namespace, slot.slot))
        maps.mountNamespaces.delete(namespace);
      await grace.passed();
      taken.delete(slot.slot);
    },
  };

  function isOwnNamespace(namespace: number): boolean {
    return namespace !== 0 && namespace !== hostMountNamespace;
  }
}

/** What the `containers` map holds of a slot, read at a place of its values. */
export function decodeSlot(view: DataView, at: number, slot: number): Slot {
  return {
    slot,
    generation: view.getUint32(at + OFFSETS.generation, true),
    cgroupId: view.getBigUint64(at + OFFSETS.cgroup, true),
    mountNamespace: view.getUint32(at + OFFSETS.mount_namespace, true),
    policyId: view.getUint32(at + OFFSETS.policy, true),
    learn: (view.getUint32(at + OFFSETS.flags, true) & ContainerFlag.CONTAINER_LEARN) !== 0,
    initPid: view.getUint32(at + OFFSETS.init_pid, true),
  };
}

function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

function u64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function readU32(bytes: Uint8Array, at = 0): number {
  return viewOf(bytes).getUint32(at, true);
}
