import { statSync } from 'node:fs';
import { ABI_VERSION } from '@runtime-enforcer/agent/kernel/gen/abi';
import { sharedMaps } from '@runtime-enforcer/agent/kernel/maps';
import type { NativeMap } from '@runtime-enforcer/agent/kernel/native';
import { pinDirectory } from '@runtime-enforcer/agent/kernel/pins';
import { OBJECTS } from './guest-files.ts';
import { PIN_ROOT, type Kernel } from './kernel.ts';

const CLAIMED = 1n;
const SCRATCHES = 8;

/**
 * Attaches the LSM program once more, over the maps of the one that decides, with all its room for paths claimed. The
 * kernel asks the program that was attached last first.
 */
export function attachWithoutRoom({ native, enforcer, tree }: Kernel): { detach(): void } {
  const pins = pinDirectory(PIN_ROOT, ABI_VERSION);
  const pinned = new Map<string, NativeMap>();
  const empty = native.load(OBJECTS.enforcer, { programs: [], ...sizesOf(pinned) });
  for (const name of sharedMaps(empty).keys()) pinned.set(name, native.openPinnedMap(pins.map(name)));
  empty.close();
  const object = native.load(OBJECTS.enforcer, {
    programs: ['check_lsm'],
    constants: {
      host_mount_namespace: statSync('/proc/1/ns/mnt').ino,
      cgroup_subsystem: tree.subsystem,
      path_bytes_max: enforcer.attachment.pathBytesMax,
      has_typed_cast: native.kernelHasFunction('bpf_rdonly_cast'),
      slot_mask: enforcer.maps.containers.maxEntries - 1,
    },
    ...sizesOf(pinned),
    reuseMaps: Object.fromEntries(pinned),
  });
  const scratches = object.maps.get('scratches');
  const program = object.programs.get('check_lsm');
  if (scratches === undefined || program === undefined)
    throw new Error('the kernel object is not what it was');
  const claimed = new Uint8Array(scratches.valueBytes);
  const bytesPerCpu = scratches.valueBytes / native.possibleCpus();
  for (let cpu = 0; cpu < native.possibleCpus(); cpu++) {
    new DataView(claimed.buffer).setBigUint64(cpu * bytesPerCpu, CLAIMED, true);
  }
  for (let slot = 0; slot < SCRATCHES; slot++) {
    scratches.update(new Uint8Array(new Uint32Array([slot]).buffer), claimed);
  }
  const link = program.attach();
  return {
    detach: () => {
      link.close();
      object.close();
      for (const map of pinned.values()) map.close();
    },
  };
}

function sizesOf(maps: ReadonlyMap<string, NativeMap>): {
  maxEntries: Record<string, number>;
  keySizes: Record<string, number>;
} {
  return {
    maxEntries: Object.fromEntries([...maps].map(([name, map]) => [name, map.maxEntries])),
    keySizes: Object.fromEntries(
      [...maps].filter(([name]) => name.startsWith('allowed_')).map(([name, map]) => [name, map.keySize]),
    ),
  };
}
