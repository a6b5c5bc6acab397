import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import type { Binding } from './native-binding.ts';
import { bindNative } from './native-face.ts';

const BUILT_ADDON = new URL('../../native/build/enforcer_native.node', import.meta.url);

/** What every failed operation of the addon throws or rejects with. */
export interface NativeError extends Error {
  /** The errno's name ('EPERM'), or 'LIBBPF_FORMAT' and the like where libbpf itself refuses. */
  readonly code: string;
  /** The function that failed: 'load', 'attach', 'updateMany'. */
  readonly operation: string;
  /** The last 64 KiB of the verifier's log, if a program was rejected. */
  readonly verifierLog?: string;
  /** updateMany: how many entries were written before the failure. */
  readonly written?: number;
}

/** A map's content at one moment: `count` keys end to end, and as many values. */
export interface MapEntries {
  readonly keys: Uint8Array;
  readonly values: Uint8Array;
  readonly count: number;
}

/**
 * One BPF map. Keys must have `keySize` bytes and values `valueBytes`, else a RangeError; every operation after
 * `close()` is a NativeError EBADF. What runs when `close()` is called still ends well.
 */
export interface NativeMap {
  /** The name in the object; of a pinned map the kernel's, which is cut at 15 bytes. */
  readonly name: string;
  readonly type: number;
  readonly keySize: number;
  readonly valueSize: number;
  /** Bytes of one value here: of a map per CPU, every possible CPU's value, each rounded up to 8. */
  readonly valueBytes: number;
  readonly maxEntries: number;
  readonly flags: number;
  readonly id: number;
  lookup(key: Uint8Array): Uint8Array | undefined;
  /** `flags`: the kernel's BPF_ANY (0, default), BPF_NOEXIST (1), BPF_EXIST (2). A full map is E2BIG. */
  update(key: Uint8Array, value: Uint8Array, flags?: number): void;
  /** False when the key was not there. */
  delete(key: Uint8Array): boolean;
  /** The whole map, read off the loop. What changes meanwhile may be in it or not. */
  entries(): Promise<MapEntries>;
  /** Writes `count` entries off the loop, in order. Resolves with `count`; a NativeError carries `written`. */
  updateMany(keys: Uint8Array, values: Uint8Array, count: number): Promise<number>;
  /** Deletes off the loop; a missing key is no error. Resolves with how many were there. */
  deleteMany(keys: Uint8Array, count: number): Promise<number>;
  /** One byte per key, off the loop: 1 present, 0 absent. */
  lookupMany(keys: Uint8Array, count: number): Promise<Uint8Array>;
  /** Names the map in a BPF file system; EEXIST where the name is taken. */
  pin(path: string): void;
  /** Kernel memory in bytes. Kernels before 6.4 estimate it from the capacity, later ones count. */
  memoryBytes(): number;
  /** Closes the descriptor; the map lives on while it is pinned or a program uses it. May be called again. */
  close(): void;
}

/**
 * An attached program. Only `close()` (or the end of the process) detaches it, and not even that while it is
 * pinned; losing the last reference does nothing.
 */
export interface NativeLink {
  readonly id: number;
  readonly programId: number;
  pin(path: string): void;
  close(): void;
}

/** Figures of a program; run count and time only with kernel.bpf_stats_enabled. 0 where the kernel has none. */
export interface ProgramInfo {
  readonly runCount: bigint;
  readonly runTimeNs: bigint;
  /** How often the kernel skipped the program, because it was already running on that CPU (5.12+). */
  readonly recursionMisses: bigint;
}

/** A loaded program by its id; holds nothing open, so `info()` is ENOENT once the program is gone. */
export interface KernelProgram {
  readonly name: string;
  readonly id: number;
  /** SHA-1 prefix of the program's instructions, 16 hexadecimal digits. */
  readonly tag: string;
  /** 0 below kernel 5.16. */
  readonly verifiedInstructions: number;
  info(): ProgramInfo;
}

/** A program of a loaded object, usable until the object is closed. */
export interface NativeProgram extends KernelProgram {
  attach(): NativeLink;
}

export interface LoadOptions {
  /** Exactly these are loaded, whatever their sections say. */
  readonly programs: readonly string[];
  /** Values of `const volatile` variables; an unknown name or a value that does not fit is an error. */
  readonly constants?: Readonly<Record<string, bigint | number | boolean>>;
  readonly maxEntries?: Readonly<Record<string, number>>;
  readonly keySizes?: Readonly<Record<string, number>>;
  /** Maps to use instead of new ones; type, sizes, capacity and flags must be what the object would make. */
  readonly reuseMaps?: Readonly<Record<string, NativeMap>>;
}

export interface NativeObject {
  readonly maps: ReadonlyMap<string, NativeMap>;
  readonly programs: ReadonlyMap<string, NativeProgram>;
  /** Closes the programs and maps; attached links stay. May be called again. */
  close(): void;
}

/** Records of one ring, end to end: record i is data.subarray(offsets[i], offsets[i + 1]). */
export interface RingBatch {
  readonly data: Uint8Array;
  /** One more than there are records. */
  readonly offsets: Uint32Array;
}

export interface RingReading {
  /** Ends the thread; what it had taken is delivered before the promise resolves. May be called again. */
  stop(): Promise<void>;
}

export interface NewMap {
  readonly name: string;
  /** The kernel's enum bpf_map_type. */
  readonly type: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags?: number;
}

export interface NativeLock {
  release(): void;
}

/** The addon. Everything throws a NativeError on failure, a TypeError on an argument of the wrong type. */
export interface Native {
  /** Opens and loads a BPF object file. Synchronous: meant for start-up. */
  load(objectPath: string, options: LoadOptions): NativeObject;
  createMap(map: NewMap): NativeMap;
  openPinnedMap(path: string): NativeMap;
  openPinnedLink(path: string): NativeLink;
  programById(id: number): KernelProgram;
  /**
   * Reads the rings in turn on a thread of its own and calls `onBatch` with the ring's index and at most
   * `maxBatch` records (1 to 65,536). At most one batch comes in a turn of the loop; until it was taken, records
   * wait in the ring. Keeps the process alive until `stop()`. A ring must have one reader only.
   */
  startRings(
    rings: readonly NativeMap[],
    onBatch: (ring: number, batch: RingBatch) => void,
    options: { readonly maxBatch: number },
  ): RingReading;
  /** The id by which the kernel program knows the cgroup. Blocks for one system call. */
  cgroupId(path: string): bigint;
  /** Resolves when every BPF program that ran at the call has ended. */
  waitForReaders(): Promise<void>;
  isMountPoint(path: string): boolean;
  /** The file system's magic number (statfs): 0xcafe4a11 BPF, 0x63677270 cgroup2, 0x27e0eb cgroup. */
  filesystemType(path: string): { readonly magic: number };
  /** Whether the kernel's BTF describes a function of that name. Parses the BTF at each call (some 10 ms). */
  kernelHasFunction(name: string): boolean;
  hasKernelBtf(): boolean;
  possibleCpus(): number;
  /** Lifts RLIMIT_MEMLOCK, against which kernels before 5.11 count maps; EPERM without CAP_SYS_RESOURCE. */
  raiseMemlockLimit(): void;
  /**
   * Locks a file, which is made if need be; undefined where somebody else holds the lock. It is held until
   * `release()` or the end of the process.
   */
  tryLock(path: string): NativeLock | undefined;
}

/** Whether the error comes from the addon. */
export function isNativeError(error: unknown): error is NativeError {
  return (
    error instanceof Error &&
    'operation' in error &&
    typeof error.operation === 'string' &&
    'code' in error &&
    typeof error.code === 'string'
  );
}

/**
 * Loads the addon: from `path`, else from RUNTIME_ENFORCER_NATIVE, else where `make -C agent/native` puts it.
 * Throws an Error that names the file when it is missing or does not fit this machine.
 */
export function loadNative(
  path = process.env['RUNTIME_ENFORCER_NATIVE'] ?? fileURLToPath(BUILT_ADDON),
): Native {
  const require = createRequire(import.meta.url);
  let binding: Binding;
  try {
    binding = require(path) as Binding;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new Error(
      `cannot load the addon ${path}: ${reason}; build it with make -C agent/native, ` +
        'or set RUNTIME_ENFORCER_NATIVE to its path (it needs libbpf.so.1, package libbpf1)',
      { cause: error },
    );
  }
  return bindNative(binding);
}
