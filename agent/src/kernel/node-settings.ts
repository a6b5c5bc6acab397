import { Override as AbiOverride, SETTINGS_LAYOUT } from './gen/abi.ts';
import type { Override } from './enforcer.ts';
import type { NativeMap } from './native.ts';

/** The program looks at no more distinct levels than this (CGROUP_LEVELS_MAX in bpf/cgroup.h). */
export const CGROUP_LEVELS_MAX = 32;

const OFFSETS = SETTINGS_LAYOUT.offsets;
const KEY = new Uint8Array(4);
/** What shallowest_level says while no container is bound. */
const NO_LEVEL = 0xffff_ffff;
const CODES: Readonly<Record<Override, number>> = {
  none: AbiOverride.OVERRIDE_NONE,
  monitor: AbiOverride.OVERRIDE_MONITOR,
  off: AbiOverride.OVERRIDE_OFF,
};

/** What applies to every container of the node. Every write starts from what is in the map: the command line writes too. */
export interface NodeSettings {
  /** For new maps: no container is bound at any level. */
  reset(): void;
  override(): Override;
  setOverride(override: Override): void;
  /**
   * Makes the program look for containers at the cgroup levels from `from` to `to` (the tree's root is 0) beside
   * those it looks at already. Throws a RangeError if that would be more levels than it can look at.
   */
  coverLevels(from: number, to: number): void;
  levels(): { readonly shallowest: number; readonly deepest: number } | undefined;
}

export function createNodeSettings(map: NativeMap): NodeSettings {
  const read = (): DataView => {
    const value = map.lookup(KEY) ?? new Uint8Array(SETTINGS_LAYOUT.size);
    return new DataView(value.buffer, value.byteOffset, value.byteLength);
  };
  const write = (view: DataView): void => map.update(KEY, new Uint8Array(view.buffer, view.byteOffset));
  /** A map that was never written holds zeros, and level 0 to 0 would be the root: nothing is bound there. */
  const levelsIn = (view: DataView): { shallowest: number; deepest: number } | undefined => {
    const shallowest = view.getUint32(OFFSETS.shallowest_level, true);
    const deepest = view.getUint32(OFFSETS.deepest_level, true);
    return deepest === 0 || shallowest > deepest ? undefined : { shallowest, deepest };
  };

  return {
    reset() {
      const view = new DataView(new ArrayBuffer(SETTINGS_LAYOUT.size));
      view.setUint32(OFFSETS.shallowest_level, NO_LEVEL, true);
      write(view);
    },
    levels: () => levelsIn(read()),
    override() {
      const code = read().getUint32(OFFSETS.override, true);
      if (code === AbiOverride.OVERRIDE_MONITOR) return 'monitor';
      return code === AbiOverride.OVERRIDE_OFF ? 'off' : 'none';
    },
    setOverride(override) {
      const view = read();
      view.setUint32(OFFSETS.override, CODES[override], true);
      write(view);
    },
    coverLevels(from, to) {
      const view = read();
      const known = levelsIn(view);
      const shallowest = Math.min(from, known?.shallowest ?? from);
      const deepest = Math.max(to, known?.deepest ?? to);
      if (shallowest === known?.shallowest && deepest === known.deepest) return;
      if (from < 1 || to < from || deepest - shallowest + 1 > CGROUP_LEVELS_MAX) {
        throw new RangeError(
          `a cgroup at level ${from} to ${to}: containers can be bound at ${CGROUP_LEVELS_MAX} levels in all, from 1 on` +
            (known === undefined ? '' : `, and some are at ${known.shallowest} to ${known.deepest}`),
        );
      }
      view.setUint32(OFFSETS.shallowest_level, shallowest, true);
      view.setUint32(OFFSETS.deepest_level, deepest, true);
      write(view);
    },
  };
}
