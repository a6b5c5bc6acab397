import { describe, expect, it } from 'vitest';
import { ALLOWED_KEY_BYTES } from './gen/abi.ts';
import { EXAMPLE_FACTS, openExampleMaps } from './kernel-maps-example.ts';
import { DEFAULT_CAPACITY, planLoad, randomHashSeed } from './load-plan.ts';
import { loadNative } from './native.ts';

describe('load plan', () => {
  it('gives longer paths smaller tables, and scratch space by program', () => {
    const plan = planLoad(EXAMPLE_FACTS, ['check_lsm'], DEFAULT_CAPACITY);
    expect(plan.maxEntries).toMatchObject({
      allowed_32: 65_536,
      allowed_128: 16_384,
      allowed_4100: 1_024,
      scratches: 8,
    });
    expect(plan.pathBytesMax).toBe(4_095);
    expect(plan.usableKeyBytes).toEqual([...ALLOWED_KEY_BYTES]);
    const copies = planLoad(
      EXAMPLE_FACTS,
      ['check_fmod_ret', 'check_copy', 'check_late_copy'],
      DEFAULT_CAPACITY,
    );
    expect(copies.maxEntries['scratches']).toBe(3);
  });

  it('keeps the number of containers and the mask that finds them in agreement', () => {
    const { maxEntries, constants } = planLoad(EXAMPLE_FACTS, [], DEFAULT_CAPACITY);
    const containers = maxEntries['containers'] ?? 0;
    expect(containers & (containers - 1)).toBe(0);
    expect(constants['slot_mask']).toBe(containers - 1);
  });

  it('shrinks what an old kernel refuses', () => {
    const plan = planLoad({ ...EXAMPLE_FACTS, largeKeys: false }, [], DEFAULT_CAPACITY);
    expect(plan.pathBytesMax).toBe(508);
    expect(plan.constants['path_bytes_max']).toBe(508);
    expect(plan.keySizes).toEqual({ allowed_1024: 512, allowed_4100: 512 });
    expect(plan.maxEntries).toMatchObject({ allowed_512: 2_048, allowed_1024: 1, allowed_4100: 1 });
  });

  it.each([0, 63, 1.5, -1, Number.NaN, 1e9])('refuses the capacity %d', (capacity) => {
    expect(() => planLoad(EXAMPLE_FACTS, [], capacity)).toThrow(RangeError);
  });

  it('takes less than 4 MiB of kernel memory by default', () => {
    const { maps, close } = openExampleMaps(loadNative(), { capacity: DEFAULT_CAPACITY });
    const { allowed, ...others } = maps;
    const all = [...Object.values(others), ...allowed.map(({ map }) => map)];
    const bytes = all.reduce((sum, map) => sum + map.memoryBytes(), 0);
    close();
    expect(bytes).toBeLessThan(4 * 1_048_576);
  });

  it('has a seed that differs', () => {
    expect(randomHashSeed()).not.toBe(randomHashSeed());
  });
});
