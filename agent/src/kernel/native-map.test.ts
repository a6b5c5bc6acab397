import { afterEach, describe, expect, test } from 'vitest';

import { loadNative, type NativeMap, type NewMap } from './native.ts';
import { hashMap, key, MAP_TYPE, numberedKeys, thrownBy, value } from './native-test-objects.ts';

const native = loadNative();
const opened: NativeMap[] = [];

function create(change: Partial<NewMap> = {}): NativeMap {
  const map = native.createMap(hashMap(change));
  opened.push(map);
  return map;
}

afterEach(() => {
  for (const map of opened.splice(0)) map.close();
});

describe('one key', () => {
  test('is written, read, replaced and deleted', () => {
    const map = create();
    expect(map.lookup(key(1))).toBeUndefined();
    map.update(key(1), value(7n));
    map.update(key(1), value(8n));
    expect(map.lookup(key(1))).toEqual(value(8n));
    expect(map.delete(key(1))).toBe(true);
    expect(map.delete(key(1))).toBe(false);
  });

  test('update flags are the kernel’s', () => {
    const map = create();
    expect(thrownBy(() => map.update(key(1), value(1n), 2))).toMatchObject({
      code: 'ENOENT',
      operation: 'update',
    });
    map.update(key(1), value(1n), 1);
    expect(thrownBy(() => map.update(key(1), value(1n), 1))).toMatchObject({ code: 'EEXIST' });
  });

  test('a full map says what it holds', () => {
    const map = create({ name: 'small', maxEntries: 2 });
    map.update(key(1), value(1n));
    map.update(key(2), value(1n));
    expect(thrownBy(() => map.update(key(3), value(1n)))).toMatchObject({
      code: 'E2BIG',
      message: "update map 'small': it holds its maximum of 2 entries (E2BIG)",
    });
  });

  test('a subarray of a larger buffer is read at its own place', () => {
    const map = create();
    map.update(numberedKeys(3, 4).subarray(4, 8), Buffer.concat([value(1n), value(5n)]).subarray(8));
    expect(map.lookup(key(1))).toEqual(value(5n));
  });

  test('a map per CPU gives and takes the values of all possible CPUs', () => {
    const map = create({ type: MAP_TYPE.perCpuArray, valueSize: 4, maxEntries: 1, flags: 0 });
    expect(map.valueBytes).toBe(8 * native.possibleCpus());
    const values = new Uint8Array(map.valueBytes);
    for (let cpu = 0; cpu < native.possibleCpus(); cpu++) values[cpu * 8] = cpu + 1;
    map.update(key(0), values);
    expect(map.lookup(key(0))).toEqual(values);
  });
});

describe('many keys', () => {
  test.each([
    ['a hash', {}],
    ['a preallocated hash', { flags: 0 }],
    ['an LRU hash', { type: MAP_TYPE.lruHash, flags: 0 }],
    ['large keys', { keySize: 4100 }],
  ])('are written, found, read whole and deleted: %s', async (_, change: Partial<NewMap>) => {
    const count = 5000;
    const map = create({ maxEntries: 20_000, ...change });
    const keys = numberedKeys(count, map.keySize);
    const values = numberedKeys(count, map.valueSize, 1000);
    expect(await map.updateMany(keys, values, count)).toBe(count);

    const all = await map.entries();
    expect([all.count, all.keys.length, all.values.length]).toEqual([count, keys.length, values.length]);
    const found = new Map<number, number>();
    const keyView = new DataView(all.keys.buffer);
    const valueView = new DataView(all.values.buffer);
    for (let i = 0; i < all.count; i++)
      found.set(keyView.getUint32(i * map.keySize, true), valueView.getUint32(i * map.valueSize, true));
    expect(found.size).toBe(count);
    expect([...found].every(([number, stored]) => stored === number + 1000)).toBe(true);

    const halfKnown = numberedKeys(count, map.keySize, count / 2);
    const present = await map.lookupMany(halfKnown, count);
    expect(present.indexOf(0)).toBe(count / 2);
    expect(present.lastIndexOf(1)).toBe(count / 2 - 1);
    expect(await map.deleteMany(halfKnown, count)).toBe(count / 2);
    expect(await map.deleteMany(halfKnown, count)).toBe(0);
    expect((await map.entries()).count).toBe(count / 2);
  });

  test('an array is read whole, and its entries cannot be deleted', async () => {
    const map = create({ type: MAP_TYPE.array, maxEntries: 300, flags: 0 });
    await map.updateMany(numberedKeys(300, 4), numberedKeys(300, 8), 300);
    expect((await map.entries()).values).toEqual(numberedKeys(300, 8));
    await expect(map.deleteMany(key(1), 1)).rejects.toMatchObject({
      code: 'EINVAL',
      operation: 'deleteMany',
    });
  });

  test('a map per CPU is read whole', async () => {
    const map = create({ type: MAP_TYPE.perCpuArray, maxEntries: 3, flags: 0 });
    const values = new Uint8Array(3 * map.valueBytes).fill(9);
    await map.updateMany(numberedKeys(3, 4), values, 3);
    expect((await map.entries()).values).toEqual(values);
  });

  test('an empty map, and no keys at all, are no error', async () => {
    const map = create();
    const nothing = new Uint8Array(0);
    expect(await map.entries()).toEqual({ keys: nothing, values: nothing, count: 0 });
    expect(await map.updateMany(nothing, nothing, 0)).toBe(0);
    expect(await map.deleteMany(nothing, 0)).toBe(0);
    expect(await map.lookupMany(nothing, 0)).toEqual(nothing);
  });

  test('a map that fills up in the middle says how many were written', async () => {
    const map = create({ name: 'small', maxEntries: 10 });
    await expect(map.updateMany(numberedKeys(16, 4), new Uint8Array(16 * 8), 16)).rejects.toMatchObject({
      code: 'E2BIG',
      operation: 'updateMany',
      written: 10,
      message:
        "updateMany map 'small': it holds its maximum of 10 entries; 10 of 16 entries were written (E2BIG)",
    });
    expect((await map.entries()).count).toBe(10);
  });

  test('the input may change after the call', async () => {
    const map = create();
    const keys = numberedKeys(4, 4);
    const writing = map.updateMany(keys, new Uint8Array(32), 4);
    keys.fill(255);
    await writing;
    expect(await map.lookupMany(numberedKeys(4, 4), 4)).toEqual(new Uint8Array([1, 1, 1, 1]));
  });

  test('a whole read under constant changes has every entry that stays', async () => {
    const map = create({ maxEntries: 20_000 });
    const staying = numberedKeys(2000, 4);
    await map.updateMany(staying, new Uint8Array(2000 * 8), 2000);
    const changing = numberedKeys(2000, 4, 1_000_000);
    for (let round = 0; round < 20; round++) {
      const churn = map
        .updateMany(changing, new Uint8Array(2000 * 8), 2000)
        .then(() => map.deleteMany(changing, 2000));
      const [all] = await Promise.all([map.entries(), churn]);
      const view = new DataView(all.keys.buffer);
      const found = new Set(Array.from({ length: all.count }, (_, i) => view.getUint32(i * 4, true)));
      for (let number = 0; number < 2000; number++) if (!found.has(number)) throw new Error(`lost ${number}`);
    }
  });
});

describe('arguments', () => {
  const map = native.createMap(hashMap());

  test.each<[string, () => unknown, string]>([
    ['short key', () => map.lookup(new Uint8Array(3)), "key of map 'example' has 3 bytes, expected 4"],
    [
      'long value',
      () => map.update(key(1), new Uint8Array(9)),
      "value of map 'example' has 9 bytes, expected 8",
    ],
    ['short key of delete', () => map.delete(new Uint8Array(0)), 'has 0 bytes, expected 4'],
  ])('a %s is a RangeError', (_, action, message) => {
    expect(action).toThrow(RangeError);
    expect(action).toThrow(message);
  });

  test('counts that do not fit the bytes are a RangeError', async () => {
    await expect(map.updateMany(key(1), new Uint8Array(16), 2)).rejects.toThrow(
      "keys of map 'example' has 4 bytes, expected 8",
    );
    await expect(map.updateMany(key(1), new Uint8Array(16), 1)).rejects.toThrow(RangeError);
    await expect(map.deleteMany(key(1), 4294967295)).rejects.toThrow(RangeError);
    await expect(map.lookupMany(key(1), 0)).rejects.toThrow(RangeError);
  });

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a string', 'abcd'],
    ['an array', [1, 2, 3, 4]],
    ['an ArrayBuffer', new ArrayBuffer(4)],
    ['an Int8Array', new Int8Array(4)],
    ['a DataView', new DataView(new ArrayBuffer(4))],
    ['a proxy', new Proxy(new Uint8Array(4), {})],
  ])('a key that is %s is a TypeError', (_, wrong) => {
    expect(() => map.lookup(wrong as Uint8Array)).toThrow(new TypeError('key must be a Uint8Array'));
  });

  test('a detached key is a RangeError, never a read of freed memory', () => {
    const bytes = new Uint8Array(4);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    expect(() => map.lookup(bytes)).toThrow(RangeError);
  });

  test.each([-1, 1.5, NaN, Infinity, 2 ** 32, '1', null])('a count of %s is a TypeError', async (wrong) => {
    await expect(map.deleteMany(key(1), wrong as number)).rejects.toThrow(TypeError);
  });

  test('a map that the kernel refuses names itself', () => {
    const action = () => native.createMap(hashMap({ name: 'impossible', keySize: 0 }));
    expect(thrownBy(action)).toMatchObject({
      code: 'EINVAL',
      operation: 'createMap',
      message: "createMap map 'impossible': Invalid argument (EINVAL)",
    });
  });
});

describe('close', () => {
  test('may be called twice, and nothing works after it', async () => {
    const map = native.createMap(hashMap());
    map.close();
    map.close();
    const closed = { code: 'EBADF', message: "lookup map 'example': the map has been closed (EBADF)" };
    expect(thrownBy(() => map.lookup(key(1)))).toMatchObject(closed);
    await expect(map.entries()).rejects.toMatchObject({ code: 'EBADF', operation: 'entries' });
    expect(thrownBy(() => map.pin('/sys/fs/bpf/x'))).toMatchObject({ code: 'EBADF' });
  });

  test('leaves work that is under way alone', async () => {
    const map = native.createMap(hashMap({ maxEntries: 50_000 }));
    const writing = map.updateMany(numberedKeys(50_000, 4), new Uint8Array(50_000 * 8), 50_000);
    map.close();
    expect(await writing).toBe(50_000);
  });
});

test('memoryBytes covers what the entries take', async () => {
  const map = native.createMap(hashMap({ keySize: 1024, maxEntries: 65_536 }));
  await map.updateMany(numberedKeys(1000, 1024), new Uint8Array(8000), 1000);
  expect(map.memoryBytes()).toBeGreaterThanOrEqual(1000 * (1024 + 8));
  map.close();
});
