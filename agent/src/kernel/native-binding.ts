import type { LoadOptions, MapEntries, NativeMap } from './native.ts';

/** A C++ object as JavaScript holds it: opaque, and checked by its type tag on every use. */
export type Handle = object;

export interface MapDescription {
  readonly handle: Handle;
  readonly name: string;
  readonly type: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly valueBytes: number;
  readonly maxEntries: number;
  readonly flags: number;
  readonly id: number;
}

export interface ProgramDescription {
  readonly name: string;
  readonly id: number;
  readonly tag: string;
  readonly verifiedInstructions: number;
  readonly runCount: bigint;
  readonly runTimeNs: bigint;
  readonly recursionMisses: bigint;
}

export interface LinkDescription {
  readonly handle: Handle;
  readonly id: number;
  readonly programId: number;
}

export interface ObjectDescription {
  readonly handle: Handle;
  readonly maps: readonly MapDescription[];
  readonly programs: readonly (ProgramDescription & { readonly handle: Handle })[];
}

export type BindingLoadOptions = Omit<LoadOptions, 'reuseMaps'> & {
  readonly reuseMaps: Readonly<Record<string, Handle>>;
};

/** The functions that the addon exports (agent/native/src); native.ts describes what they do. */
export interface Binding {
  load(objectPath: string, options: BindingLoadOptions): ObjectDescription;
  objectClose(object: Handle): void;
  programAttach(program: Handle): LinkDescription;
  programInfo(program: Handle): ProgramDescription;
  programInfoById(id: number): ProgramDescription;
  linkPin(link: Handle, path: string): void;
  linkClose(link: Handle): void;
  openPinnedLink(path: string): LinkDescription;
  createMap(
    type: number,
    keySize: number,
    valueSize: number,
    maxEntries: number,
    flags: number,
    name: string,
  ): MapDescription;
  openPinnedMap(path: string): MapDescription;
  mapLookup(map: Handle, key: Uint8Array): Uint8Array | undefined;
  mapUpdate(map: Handle, key: Uint8Array, value: Uint8Array, flags: number): void;
  mapDelete(map: Handle, key: Uint8Array): boolean;
  mapEntries(map: Handle): Promise<MapEntries>;
  mapUpdateMany(map: Handle, keys: Uint8Array, values: Uint8Array, count: number): Promise<number>;
  mapDeleteMany(map: Handle, keys: Uint8Array, count: number): Promise<number>;
  mapLookupMany(map: Handle, keys: Uint8Array, count: number): Promise<Uint8Array>;
  mapMemoryBytes(map: Handle): number;
  mapPin(map: Handle, path: string): void;
  mapClose(map: Handle): void;
  startRings(
    maps: readonly Handle[],
    receiver: (ring: number, data: Uint8Array, offsets: Uint32Array) => void,
    maxBatch: number,
  ): Handle;
  ringsTaken(rings: Handle): void;
  stopRings(rings: Handle): Promise<void>;
  cgroupId(path: string): bigint;
  filesystemMagic(path: string): number;
  isMountPoint(path: string): boolean;
  tryLock(path: string): Handle | undefined;
  lockRelease(lock: Handle): void;
  raiseMemlockLimit(): void;
  hasKernelBtf(): boolean;
  kernelHasFunction(name: string): boolean;
  possibleCpus(): number;
  waitForReaders(): Promise<void>;
}

const mapHandles = new WeakMap<NativeMap, Handle>();

/** Remembers which C++ map stands behind the face's. */
export function rememberMap(map: NativeMap, handle: Handle): void {
  mapHandles.set(map, handle);
}

/** The C++ map behind the face's; a TypeError for an object that the addon did not make. */
export function handleOfMap(map: NativeMap): Handle {
  const handle = mapHandles.get(map);
  if (handle === undefined) throw new TypeError('expected a map that the addon made');
  return handle;
}
