import type { NativeMap, NativeObject } from './native.ts';
import { allowedTableName, type LoadPlan } from './load-plan.ts';

/** One table of allowed paths: all entries of one key size. */
export interface AllowedTable {
  readonly keyBytes: number;
  readonly map: NativeMap;
}

/** The maps that agent and program share, as bpf/maps.h describes them. */
export interface KernelMaps {
  readonly settings: NativeMap;
  readonly cgroups: NativeMap;
  readonly mountNamespaces: NativeMap;
  readonly containers: NativeMap;
  readonly containerCounters: NativeMap;
  readonly policies: NativeMap;
  readonly seen: NativeMap;
  readonly learningEvents: NativeMap;
  readonly violationEvents: NativeMap;
  readonly outcomes: NativeMap;
  /** By rising key size; only those that this kernel can use. */
  readonly allowed: readonly AllowedTable[];
}

/** Not shared: where the program builds paths. Its size depends on the attachment. */
const PRIVATE_MAPS: ReadonlySet<string> = new Set(['scratches']);

/** The maps of a loaded object that outlive the agent, by name. */
export function sharedMaps(object: NativeObject): Map<string, NativeMap> {
  return new Map([...object.maps].filter(([name]) => !PRIVATE_MAPS.has(name)));
}

/** Throws an Error that names the map if the object has not all of them. */
export function kernelMaps(maps: ReadonlyMap<string, NativeMap>, plan: LoadPlan): KernelMaps {
  const map = (name: string): NativeMap => {
    const found = maps.get(name);
    if (found === undefined)
      throw new Error(`the kernel object has no map '${name}'; build it again: make -C bpf`);
    return found;
  };
  return {
    settings: map('settings'),
    cgroups: map('cgroups'),
    mountNamespaces: map('mount_namespaces'),
    containers: map('containers'),
    containerCounters: map('container_counters'),
    policies: map('policies'),
    seen: map('seen'),
    learningEvents: map('learning_events'),
    violationEvents: map('violation_events'),
    outcomes: map('outcomes'),
    allowed: plan.usableKeyBytes.map((keyBytes) => ({ keyBytes, map: map(allowedTableName(keyBytes)) })),
  };
}

/** Whether a pinned map is what the object would make, so that the program can use it. */
export function isSameDefinition(pinned: NativeMap, made: NativeMap): boolean {
  return (
    pinned.type === made.type &&
    pinned.keySize === made.keySize &&
    pinned.valueSize === made.valueSize &&
    pinned.maxEntries === made.maxEntries &&
    pinned.flags === made.flags
  );
}
