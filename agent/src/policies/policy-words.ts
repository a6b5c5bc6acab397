import { Mode, POLICY_FLAGS_SHIFT, POLICY_MODE_SHIFT, PolicyFlag } from '../kernel/gen/abi.ts';
import type { NativeMap } from '../kernel/native.ts';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';
import type { OtherMountNamespaces } from '@runtime-enforcer/api/container-rules';

/** What one 64-bit word of the `policies` map says. */
export interface PolicyWord {
  readonly list: number;
  readonly mode: PolicyMode;
  readonly otherMountNamespaces: OtherMountNamespaces;
}

/** The words by policy id. A word of zero is a policy that is not there: its containers may start nothing. */
export interface PolicyWords {
  /** A free id, or undefined where all are taken. */
  allocate(): number | undefined;
  /** Makes list and mode effective together. Throws a NativeError. */
  write(id: number, word: PolicyWord): void;
  /** Zeroes the word. The id stays taken. Throws a NativeError. */
  clear(id: number): void;
  /** Lets the id be given out again; nothing may refer to it any more. */
  free(id: number): void;
  /** Every id that has a word, as an agent before left it; all of them are taken then. */
  adopt(): Promise<Map<number, PolicyWord>>;
  readonly capacity: number;
}

export function createPolicyWords(map: NativeMap): PolicyWords {
  const taken = new Set<number>();
  const key = new Uint8Array(4);
  const value = new Uint8Array(8);
  const keyView = new DataView(key.buffer);
  const valueView = new DataView(value.buffer);
  // Id 0 stands for no policy.
  const capacity = map.maxEntries - 1;
  let last = 0;

  const store = (id: number, word: bigint): void => {
    keyView.setUint32(0, id, true);
    valueView.setBigUint64(0, word, true);
    map.update(key, value);
  };

  return {
    capacity,
    allocate() {
      if (taken.size >= capacity) return undefined;
      // In turn, so that an id that was freed is used again as late as possible.
      do last = last >= capacity ? 1 : last + 1;
      while (taken.has(last));
      taken.add(last);
      return last;
    },
    write: (id, word) => store(id, encodePolicyWord(word)),
    clear: (id) => store(id, 0n),
    free(id) {
      taken.delete(id);
    },
    async adopt() {
      const { keys, values, count } = await map.entries();
      const found = new Map<number, PolicyWord>();
      const allKeys = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
      const allValues = new DataView(values.buffer, values.byteOffset, values.byteLength);
      for (let i = 0; i < count; i++) {
        const id = allKeys.getUint32(i * 4, true);
        const word = allValues.getBigUint64(i * 8, true);
        if (word === 0n || id === 0) continue;
        found.set(id, decodePolicyWord(word));
        taken.add(id);
      }
      return found;
    },
  };
}

export function encodePolicyWord({ list, mode, otherMountNamespaces }: PolicyWord): bigint {
  const code = mode === 'monitor' ? Mode.MODE_MONITOR : Mode.MODE_PROTECT;
  const flags = otherMountNamespaces === 'unchecked' ? PolicyFlag.POLICY_OTHER_MOUNT_NAMESPACES_UNCHECKED : 0;
  return (
    BigInt(list) | (BigInt(code) << BigInt(POLICY_MODE_SHIFT)) | (BigInt(flags) << BigInt(POLICY_FLAGS_SHIFT))
  );
}

/** As the kernel program reads it: whatever is not `monitor` protects. */
export function decodePolicyWord(word: bigint): PolicyWord {
  const code = Number((word >> BigInt(POLICY_MODE_SHIFT)) & 255n);
  const flags = Number(word >> BigInt(POLICY_FLAGS_SHIFT));
  return {
    list: Number(word & 0xffff_ffffn),
    mode: code === Mode.MODE_MONITOR ? 'monitor' : 'protect',
    otherMountNamespaces: flags & PolicyFlag.POLICY_OTHER_MOUNT_NAMESPACES_UNCHECKED ? 'unchecked' : 'deny',
  };
}
