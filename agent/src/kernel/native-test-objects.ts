import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { LoadOptions, NativeMap, NewMap } from './native.ts';

/** For tests: the addon's own small BPF object; `make -C agent/native tests` builds it. */
export const RECORDS_OBJECT = fileURLToPath(
  new URL('../../native/build/test/records.bpf.o', import.meta.url),
);
export const ENFORCER_OBJECT = fileURLToPath(new URL('../../../bpf/build/enforcer.bpf.o', import.meta.url));
export const PROBE_OBJECT = fileURLToPath(new URL('../../../bpf/build/probe.bpf.o', import.meta.url));

export const MAP_TYPE = { hash: 1, array: 2, perCpuArray: 6, lruHash: 9, ringBuffer: 27 } as const;
export const NO_PREALLOC = 1;

const KILL_SYSTEM_CALL = process.arch === 'x64' ? 62 : 129;

/** A small hash map of 4-byte keys and 8-byte values, changed where a test needs another. */
export function hashMap(change: Partial<NewMap> = {}): NewMap {
  const { hash: type } = MAP_TYPE;
  return { name: 'example', type, keySize: 4, valueSize: 8, maxEntries: 16, flags: NO_PREALLOC, ...change };
}

/** Lets the records object watch this process: each `trigger()` writes so many records into its rings. */
export function watchThisProcess(first: number, second: number): LoadOptions {
  const namespace = statSync('/proc/self/ns/pid', { bigint: true });
  return {
    programs: ['write_on_system_call'],
    constants: {
      pid_namespace_device: namespace.dev,
      pid_namespace_inode: namespace.ino,
      process: process.pid,
      system_call: KILL_SYSTEM_CALL,
      first_records: first,
      second_records: second,
    },
  };
}

/** Makes the one system call that the records object waits for. */
export function trigger(): void {
  process.kill(process.pid, 0);
}

/** `count` keys, end to end: the numbers from `from` on, little-endian, zero-padded to `keySize`. */
export function numberedKeys(count: number, keySize: number, from = 0): Uint8Array {
  const keys = new Uint8Array(count * keySize);
  const view = new DataView(keys.buffer);
  for (let i = 0; i < count; i++) view.setUint32(i * keySize, from + i, true);
  return keys;
}

export function key(number: number): Uint8Array {
  return numberedKeys(1, 4, number);
}

export function value(number: bigint): Uint8Array {
  return new Uint8Array(new BigUint64Array([number]).buffer);
}

/** The 64-bit number at an index of an array map. */
export function counter(map: NativeMap | undefined, index: number): bigint {
  const bytes = map?.lookup(key(index));
  if (bytes === undefined) throw new Error(`no counter ${index}`);
  return new DataView(bytes.buffer).getBigUint64(0, true);
}

/** The map of that name, or an error that lists what there is. */
export function mapOf(maps: ReadonlyMap<string, NativeMap>, name: string): NativeMap {
  const map = maps.get(name);
  if (map === undefined) throw new Error(`no map '${name}' among ${[...maps.keys()].join(', ')}`);
  return map;
}

/** Mounts a BPF file system in a new directory; `remove()` takes both away. Needs root. */
export function mountBpfFs(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'enforcer-bpffs-'));
  execFileSync('mount', ['-t', 'bpf', 'bpf', path]);
  return {
    path,
    remove: () => {
      execFileSync('umount', [path]);
      rmSync(path, { recursive: true });
    },
  };
}

/** What a call throws, as an object to be matched. */
export function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('expected an error, and none was thrown');
}
