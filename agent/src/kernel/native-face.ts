import {
  handleOfMap,
  rememberMap,
  type Binding,
  type LinkDescription,
  type MapDescription,
  type ObjectDescription,
  type ProgramDescription,
} from './native-binding.ts';
import type {
  KernelProgram,
  LoadOptions,
  Native,
  NativeLink,
  NativeMap,
  NativeObject,
  NativeProgram,
  ProgramInfo,
} from './native.ts';

/** Puts the typed face of native.ts before the addon's functions. */
export function bindNative(binding: Binding): Native {
  return {
    load: (objectPath, options) => faceOfObject(binding, binding.load(objectPath, withMapHandles(options))),
    createMap: ({ name, type, keySize, valueSize, maxEntries, flags = 0 }) =>
      faceOfMap(binding, binding.createMap(type, keySize, valueSize, maxEntries, flags, name)),
    openPinnedMap: (path) => faceOfMap(binding, binding.openPinnedMap(path)),
    openPinnedLink: (path) => faceOfLink(binding, binding.openPinnedLink(path)),
    programById: (id) => faceOfKernelProgram(binding.programInfoById(id), () => binding.programInfoById(id)),
    startRings: (rings, onBatch, { maxBatch }) => {
      const handle = binding.startRings(
        rings.map(handleOfMap),
        (ring, data, offsets) => {
          setImmediate(() => binding.ringsTaken(handle));
          onBatch(ring, { data, offsets });
        },
        maxBatch,
      );
      let stopped: Promise<void> | undefined;
      return { stop: () => (stopped ??= binding.stopRings(handle)) };
    },
    cgroupId: (path) => binding.cgroupId(path),
    waitForReaders: () => binding.waitForReaders(),
    isMountPoint: (path) => binding.isMountPoint(path),
    filesystemType: (path) => ({ magic: binding.filesystemMagic(path) }),
    kernelHasFunction: (name) => binding.kernelHasFunction(name),
    hasKernelBtf: () => binding.hasKernelBtf(),
    possibleCpus: () => binding.possibleCpus(),
    raiseMemlockLimit: () => binding.raiseMemlockLimit(),
    tryLock: (path) => {
      const handle = binding.tryLock(path);
      return handle && { release: () => binding.lockRelease(handle) };
    },
  };
}

function withMapHandles(options: LoadOptions) {
  const reused = Object.entries(options.reuseMaps ?? {});
  return {
    ...options,
    reuseMaps: Object.fromEntries(reused.map(([name, map]) => [name, handleOfMap(map)])),
  };
}

function faceOfMap(binding: Binding, { handle, ...description }: MapDescription): NativeMap {
  const map: NativeMap = {
    ...description,
    lookup: (key) => binding.mapLookup(handle, key),
    update: (key, value, flags = 0) => binding.mapUpdate(handle, key, value, flags),
    delete: (key) => binding.mapDelete(handle, key),
    entries: async () => binding.mapEntries(handle),
    updateMany: async (keys, values, count) => binding.mapUpdateMany(handle, keys, values, count),
    deleteMany: async (keys, count) => binding.mapDeleteMany(handle, keys, count),
    lookupMany: async (keys, count) => binding.mapLookupMany(handle, keys, count),
    pin: (path) => binding.mapPin(handle, path),
    memoryBytes: () => binding.mapMemoryBytes(handle),
    close: () => binding.mapClose(handle),
  };
  rememberMap(map, handle);
  return map;
}

function faceOfLink(binding: Binding, { handle, id, programId }: LinkDescription): NativeLink {
  return {
    id,
    programId,
    pin: (path) => binding.linkPin(handle, path),
    close: () => binding.linkClose(handle),
  };
}

function faceOfKernelProgram(description: ProgramDescription, read: () => ProgramDescription): KernelProgram {
  const { name, id, tag, verifiedInstructions } = description;
  return { name, id, tag, verifiedInstructions, info: () => programInfo(read()) };
}

function programInfo({ runCount, runTimeNs, recursionMisses }: ProgramDescription): ProgramInfo {
  return { runCount, runTimeNs, recursionMisses };
}

function faceOfObject(binding: Binding, description: ObjectDescription): NativeObject {
  const maps = new Map(description.maps.map((map) => [map.name, faceOfMap(binding, map)]));
  const programs = new Map<string, NativeProgram>();
  for (const { handle, ...program } of description.programs) {
    programs.set(program.name, {
      ...faceOfKernelProgram(program, () => binding.programInfo(handle)),
      attach: () => faceOfLink(binding, binding.programAttach(handle)),
    });
  }
  return {
    maps,
    programs,
    close: () => {
      for (const map of maps.values()) map.close();
      binding.objectClose(description.handle);
    },
  };
}
