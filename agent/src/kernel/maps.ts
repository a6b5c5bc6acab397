import type { NativeMap } from './native.ts';

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
