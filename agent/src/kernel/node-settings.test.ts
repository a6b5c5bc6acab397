import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openExampleMaps } from './kernel-maps-example.ts';
import { loadNative } from './native.ts';
import { CGROUP_LEVELS_MAX, createNodeSettings, type NodeSettings } from './node-settings.ts';

const native = loadNative();

describe('node settings', () => {
  let opened: ReturnType<typeof openExampleMaps>;
  let settings: NodeSettings;
  /** As the kernel program reads them: shallowest, deepest, override. */
  const words = (): number[] => {
    const value = Buffer.from(opened.maps.settings.lookup(new Uint8Array(4)) ?? []);
    return [value.readUInt32LE(0), value.readUInt32LE(4), value.readUInt32LE(8)];
  };

  beforeEach(() => {
    opened = openExampleMaps(native);
    settings = createNodeSettings(opened.maps.settings);
    settings.reset();
  });
  afterEach(() => opened.close());

  it('look at no level at first', () => {
    const [shallowest = 0, deepest = 0] = words();
    expect(shallowest).toBeGreaterThan(deepest);
    expect(settings.levels()).toBeUndefined();
  });

  it('look at every level that a container was ever bound at', () => {
    settings.coverLevels(5, 5);
    expect(words()).toEqual([5, 5, 0]);
    settings.coverLevels(3, 4);
    settings.coverLevels(4, 4);
    expect(words()).toEqual([3, 5, 0]);
  });

  it('refuse more levels than the program looks at, and the root', () => {
    settings.coverLevels(4, 4);
    expect(() => settings.coverLevels(4, 4 + CGROUP_LEVELS_MAX)).toThrow(/32 levels.*at 4 to 4/);
    expect(() => settings.coverLevels(0, 0)).toThrow(RangeError);
    settings.coverLevels(4, 3 + CGROUP_LEVELS_MAX);
    expect(words()).toEqual([4, 3 + CGROUP_LEVELS_MAX, 0]);
  });

  it('keep levels and override apart', () => {
    settings.coverLevels(4, 4);
    settings.setOverride('off');
    settings.coverLevels(6, 6);
    expect(words()).toEqual([4, 6, 2]);
    expect(settings.override()).toBe('off');
    settings.setOverride('monitor');
    expect(words()).toEqual([4, 6, 1]);
    settings.setOverride('none');
    expect(words()).toEqual([4, 6, 0]);
  });
});
