import type { ReportedBinding } from '@runtime-enforcer/rpc/reported';
import { CONTAINER_LAYOUT } from '../kernel/gen/abi.ts';
import type { KernelMaps } from '../kernel/maps.ts';
import type { MapEntries, Native } from '../kernel/native.ts';
import { decodePolicyWord } from '../policies/policy-words.ts';
import type { KernelReadings } from '../server/observer-server.ts';
import { presentCgroupId, type CgroupTree } from './cgroup-tree.ts';
import { decodeSlot, type Slot } from './container-slots.ts';

type BindingMaps = Pick<KernelMaps, 'cgroups' | 'mountNamespaces' | 'containers' | 'policies'>;

/** What the observer tells of a node's kernel. */
export function kernelReadings(
  native: Pick<Native, 'cgroupId'>,
  tree: Pick<CgroupTree, 'root'>,
  maps: BindingMaps,
  hostMountNamespace: number,
): KernelReadings {
  return {
    bindings: () => readKernelBindings(maps, hostMountNamespace),
    presentCgroupId: ({ cgroupPath }) => presentCgroupId(native, tree, cgroupPath),
  };
}

/**
 * Everything by which the kernel tells a cgroup for a container's, by rising cgroup id, then slot: read from its maps
 * off the loop, whatever this agent believes it has written. What changes meanwhile may be in it or not. Rejects with a
 * NativeError.
 */
export async function readKernelBindings(
  maps: BindingMaps,
  hostMountNamespace: number,
): Promise<readonly ReportedBinding[]> {
  const [index, namespaces, contents, words] = await Promise.all([
    maps.cgroups.entries(),
    maps.mountNamespaces.entries(),
    maps.containers.entries(),
    maps.policies.entries(),
  ]);
  const slots = slotsOf(contents);
  const modes = modesOf(words);
  const byNamespace = numbersOf(namespaces);
  const bindings: ReportedBinding[] = [];
  const add = (cgroupId: bigint, number: number, indexed: boolean): void => {
    const { cgroupId: slotCgroupId, learn: learning, ...slot } = slots.get(number) ?? NO_SLOT;
    const { generation, mountNamespace, policyId } = slot;
    const mode = modes.get(policyId) ?? 'unknown';
    const isUnnamed = mountNamespace === 0 || mountNamespace === hostMountNamespace;
    const namespaceIndexed = isUnnamed || byNamespace.get(mountNamespace) === number;
    bindings.push({
      ...{ cgroupId, slot: number, indexed, slotCgroupId },
      ...{ generation, mountNamespace, policyId, learning, mode, namespaceIndexed },
    });
  };

  const named = new Map<number, bigint>();
  const ids = viewOf(index.keys);
  const numbers = viewOf(index.values);
  for (let i = 0; i < index.count; i++) {
    const cgroupId = ids.getBigUint64(i * 8, true);
    const number = numbers.getUint32(i * 4, true);
    named.set(number, cgroupId);
    add(cgroupId, number, true);
  }
  // The program looks at a place that a cgroup is likely to have before it asks the index.
  for (const { slot, cgroupId } of slots.values()) {
    if (cgroupId !== 0n && named.get(slot) !== cgroupId) add(cgroupId, slot, false);
  }
  return bindings.sort((one, other) => Number(one.cgroupId - other.cgroupId) || one.slot - other.slot);
}

const NO_SLOT: Omit<Slot, 'slot'> = {
  ...{ generation: 0, cgroupId: 0n, mountNamespace: 0, policyId: 0, learn: false, initPid: 0 },
};

function numbersOf({ keys, values, count }: MapEntries): ReadonlyMap<number, number> {
  const from = viewOf(keys);
  const to = viewOf(values);
  const numbers = new Map<number, number>();
  for (let i = 0; i < count; i++) numbers.set(from.getUint32(i * 4, true), to.getUint32(i * 4, true));
  return numbers;
}

function slotsOf({ keys, values, count }: MapEntries): ReadonlyMap<number, Slot> {
  const numbers = viewOf(keys);
  const contents = viewOf(values);
  const slots = new Map<number, Slot>();
  for (let i = 0; i < count; i++) {
    const number = numbers.getUint32(i * 4, true);
    slots.set(number, decodeSlot(contents, i * CONTAINER_LAYOUT.size, number));
  }
  return slots;
}

/** By policy id; a word of zero is a list that is not there. */
function modesOf({ keys, values, count }: MapEntries): ReadonlyMap<number, 'monitor' | 'protect'> {
  const ids = viewOf(keys);
  const words = viewOf(values);
  const modes = new Map<number, 'monitor' | 'protect'>();
  for (let i = 0; i < count; i++) {
    const word = words.getBigUint64(i * 8, true);
    if (word !== 0n) modes.set(ids.getUint32(i * 4, true), decodePolicyWord(word).mode);
  }
  return modes;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
