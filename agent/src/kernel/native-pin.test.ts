import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { loadNative } from './native.ts';
import {
  counter,
  hashMap,
  key,
  mapOf,
  mountBpfFs,
  RECORDS_OBJECT,
  thrownBy,
  trigger,
  value,
  watchThisProcess,
} from './native-test-objects.ts';

const native = loadNative();
let bpfFs: ReturnType<typeof mountBpfFs>;
beforeAll(() => {
  bpfFs = mountBpfFs();
});
afterAll(() => bpfFs.remove());

describe('a pinned map', () => {
  test('outlives its descriptor and is found with all it says', () => {
    const path = join(bpfFs.path, 'table');
    const map = native.createMap(hashMap({ name: 'a_name_of_more_than_15' }));
    map.update(key(1), value(5n));
    map.pin(path);
    map.close();

    const found = native.openPinnedMap(path);
    expect(found).toMatchObject({ ...hashMap({ name: 'a_name_of_more_' }), id: map.id });
    expect(found.lookup(key(1))).toEqual(value(5n));
    const object = native.load(RECORDS_OBJECT, { programs: [] });
    expect(() => native.load(RECORDS_OBJECT, { programs: [], reuseMaps: { table: found } })).toThrow(
      'flags 1, expected 0',
    );
    found.close();
    object.close();
  });

  test('never replaces another pin', () => {
    const path = join(bpfFs.path, 'taken');
    const map = native.createMap(hashMap());
    map.pin(path);
    expect(thrownBy(() => map.pin(path))).toMatchObject({
      code: 'EEXIST',
      operation: 'pin',
      message: `pin map 'example' at ${path}: File exists (EEXIST)`,
    });
    map.close();
  });

  test('has no dot in its name, which the kernel reserves', () => {
    const map = native.createMap(hashMap());
    expect(() => map.pin(join(bpfFs.path, 'a.b'))).toThrow('must not contain a dot (EPERM)');
    map.close();
  });

  test('outside a BPF file system is refused with the remedy', () => {
    const directory = mkdtempSync(join(tmpdir(), 'enforcer-pin-'));
    const map = native.createMap(hashMap());
    expect(() => map.pin(join(directory, 'x'))).toThrow(
      `${directory} is not in a BPF file system (mount -t bpf`,
    );
    expect(() => map.pin(join(directory, 'missing', 'x'))).toThrow('ENOENT');
    expect(() => native.openPinnedMap(join(directory, 'x'))).toThrow('nothing is pinned there (ENOENT)');
    expect(() => native.openPinnedMap(directory)).toThrow(`openPinnedMap ${directory}: `);
    map.close();
    rmSync(directory, { recursive: true });
  });

  test('of another kind is refused', () => {
    const path = join(bpfFs.path, 'kind');
    const map = native.createMap(hashMap());
    map.pin(path);
    map.close();
    expect(thrownBy(() => native.openPinnedLink(path))).toMatchObject({ code: 'EINVAL' });
    expect(() => native.openPinnedLink(path)).toThrow(
      'what is pinned there is anon_inode:bpf-map, expected bpf-link',
    );
  });
});

describe('a pinned link', () => {
  test('keeps its program attached until the pin and every descriptor are gone', () => {
    const path = join(bpfFs.path, 'link');
    const object = native.load(RECORDS_OBJECT, watchThisProcess(1, 0));
    const program = object.programs.get('write_on_system_call');
    const link = program?.attach();
    link?.pin(path);
    link?.close();
    trigger();
    const counters = mapOf(object.maps, 'counters');
    expect(counter(counters, 0)).toBe(1n);

    const found = native.openPinnedLink(path);
    expect(found).toMatchObject({ id: link?.id, programId: program?.id });
    expect(native.programById(found.programId).tag).toBe(program?.tag);
    rmSync(path);
    trigger();
    expect(counter(counters, 0)).toBe(2n);
    found.close();
    trigger();
    expect(counter(counters, 0)).toBe(2n);
    expect(thrownBy(() => found.pin(path))).toMatchObject({ code: 'EBADF' });
    object.close();
  });

  test('is replaced by rename: the new one runs before, the old one ends soon after', async () => {
    const directory = join(bpfFs.path, 'versions');
    mkdirSync(directory);
    const [old, next] = [1, 2].map((records) => native.load(RECORDS_OBJECT, watchThisProcess(records, 0)));
    for (const [object, name] of [
      [old, 'link'],
      [next, 'link-next'],
    ] as const) {
      const link = object?.programs.get('write_on_system_call')?.attach();
      link?.pin(join(directory, name));
      link?.close();
    }
    const counted = (): bigint[] => [old, next].map((object) => counter(object?.maps.get('counters'), 0));
    trigger();
    expect(counted()).toEqual([1n, 2n]);
    renameSync(join(directory, 'link-next'), join(directory, 'link'));
    let triggers = 1n;
    let before: bigint | undefined;
    do {
      await setTimeout(5);
      before = counted()[0];
      trigger();
      triggers++;
    } while (counted()[0] !== before && triggers < 1000n);
    expect(counted()[0]).toBeLessThan(triggers);
    expect(counted()[1]).toBe(2n * triggers);
    rmSync(directory, { recursive: true });
    for (const object of [old, next]) object?.close();
  });
});
