import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from 'vitest';

import { isNativeError, loadNative, type LoadOptions, type NativeError } from './native.ts';
import {
  counter,
  ENFORCER_OBJECT,
  hashMap,
  key,
  mapOf,
  RECORDS_OBJECT,
  thrownBy,
  trigger,
  value,
  watchThisProcess,
} from './native-test-objects.ts';

const native = loadNative();
const directory = mkdtempSync(join(tmpdir(), 'enforcer-load-'));
afterAll(() => rmSync(directory, { recursive: true }));

function refusal(path: string, options: LoadOptions): NativeError {
  const error = thrownBy(() => native.load(path, options));
  if (!isNativeError(error)) throw error;
  expect(error.operation).toBe('load');
  return error;
}

describe('the maps of an object', () => {
  test('have their sizes, and hold what is written', () => {
    const object = native.load(RECORDS_OBJECT, { programs: [] });
    expect([...object.maps.keys()].sort()).toEqual([
      'constants',
      'counters',
      'first',
      'scratch',
      'second',
      'table',
    ]);
    const table = mapOf(object.maps, 'table');
    expect(table).toMatchObject({ type: 1, keySize: 4, valueSize: 8, maxEntries: 16, flags: 0 });
    table.update(key(1), value(2n));
    expect(table.lookup(key(1))).toEqual(value(2n));
    expect(object.programs.size).toBe(0);
    object.close();
    object.close();
    expect(thrownBy(() => table.lookup(key(1)))).toMatchObject({ code: 'EBADF' });
  });

  test('take other capacities and key sizes', () => {
    const object = native.load(RECORDS_OBJECT, {
      programs: [],
      maxEntries: { table: 77, first: 8192 },
      keySizes: { table: 64 },
    });
    expect(mapOf(object.maps, 'table')).toMatchObject({ maxEntries: 77, keySize: 64 });
    expect(mapOf(object.maps, 'first').maxEntries).toBe(8192);
    object.close();
  });

  test('the product’s own object loads without its programs', () => {
    const object = native.load(ENFORCER_OBJECT, {
      programs: [],
      constants: { host_mount_namespace: 1, cgroup_subsystem: -1 },
    });
    expect(mapOf(object.maps, 'cgroups')).toMatchObject({ keySize: 8, valueSize: 4 });
    expect(mapOf(object.maps, 'allowed_4100').keySize).toBe(4100);
    object.close();
  });
});

describe('constants', () => {
  test('arrive in the program with their signs and widths', () => {
    const watching = watchThisProcess(0, 0);
    const extremes = {
      negative: -5,
      most_negative: -(2n ** 63n),
      large: 2n ** 64n - 1n,
      small: 65_535,
      flag: true,
    };
    const object = native.load(RECORDS_OBJECT, {
      ...watching,
      constants: { ...watching.constants, ...extremes },
    });
    const link = object.programs.get('write_on_system_call')?.attach();
    trigger();
    const seen = mapOf(object.maps, 'constants').lookup(key(0)) ?? new Uint8Array(24);
    link?.close();
    object.close();
    const view = new DataView(seen.buffer);
    expect([view.getBigInt64(0, true), view.getBigUint64(8, true)]).toEqual([-(2n ** 63n), 2n ** 64n - 1n]);
    expect([view.getInt32(16, true), view.getUint16(20, true), view.getUint8(22)]).toEqual([-5, 65_535, 1]);
  });

  test.each<[string, bigint | number | boolean, string]>([
    ['small', 65_536, "constant 'small': 65536 does not fit into 2 bytes (ERANGE)"],
    ['small', -1, "constant 'small': -1 does not fit into 2 bytes (ERANGE)"],
    ['negative', 2 ** 31, "constant 'negative': 2147483648 does not fit into 4 bytes (ERANGE)"],
    ['negative', -(2 ** 31) - 1, "constant 'negative': -2147483649 does not fit into 4 bytes (ERANGE)"],
    [
      'most_negative',
      2n ** 63n,
      "constant 'most_negative': 9223372036854775808 does not fit into 8 bytes (ERANGE)",
    ],
    ['large', -1n, "constant 'large': -1 does not fit into 8 bytes (ERANGE)"],
    ['flag', 2, "constant 'flag': 2 does not fit into a boolean (ERANGE)"],
    ['unknown', 1, "constant 'unknown': the program has no constant of that name (ENOENT)"],
  ])('%s = %s is refused', (name, wrong, message) => {
    expect(refusal(RECORDS_OBJECT, { programs: [], constants: { [name]: wrong } }).message).toBe(
      `load ${RECORDS_OBJECT}, ${message}`,
    );
  });

  test.each([1.5, NaN, 2 ** 53, 2n ** 64n, -(2n ** 64n), 2n ** 200n, '1', null, undefined, {}])(
    '%s is a TypeError',
    (wrong) => {
      const options = { programs: [], constants: { large: wrong as number } };
      expect(() => native.load(RECORDS_OBJECT, options)).toThrow(TypeError);
    },
  );
});

describe('maps that are reused', () => {
  test('are the same maps', () => {
    const first = native.load(RECORDS_OBJECT, { programs: [] });
    const table = mapOf(first.maps, 'table');
    const second = native.load(RECORDS_OBJECT, { programs: [], reuseMaps: { table } });
    table.update(key(1), value(42n));
    expect(mapOf(second.maps, 'table').id).toBe(table.id);
    first.close();
    expect(mapOf(second.maps, 'table').lookup(key(1))).toEqual(value(42n));
    second.close();
  });

  test.each<[string, Parameters<typeof hashMap>[0], string]>([
    ['another capacity', { maxEntries: 17 }, 'maxEntries 17, expected 16'],
    ['another key size', { keySize: 8 }, 'keySize 8, expected 4'],
    ['another value size', { valueSize: 4 }, 'valueSize 4, expected 8'],
    ['another type', { type: 9 }, 'type 9, expected 1'],
    ['other flags', { flags: 1 }, 'flags 1, expected 0'],
  ])('with %s are refused', (_, change, message) => {
    const other = native.createMap({ ...hashMap({ flags: 0 }), ...change });
    const error = refusal(RECORDS_OBJECT, { programs: [], reuseMaps: { table: other } });
    other.close();
    expect(error.message).toBe(
      `load ${RECORDS_OBJECT}, map 'table': the map to be reused has ${message} (EINVAL)`,
    );
  });

  test('that are closed, or no maps, are refused', () => {
    const table = native.createMap(hashMap({ flags: 0 }));
    table.close();
    expect(refusal(RECORDS_OBJECT, { programs: [], reuseMaps: { table } }).code).toBe('EBADF');
    expect(() => native.load(RECORDS_OBJECT, { programs: [], reuseMaps: { table: { ...table } } })).toThrow(
      new TypeError('expected a map that the addon made'),
    );
  });
});

describe('what does not fit', () => {
  test.each<[string, LoadOptions, string]>([
    [
      'program',
      { programs: ['nobody'] },
      "program 'nobody': the object has no program of that name; it has ",
    ],
    [
      'map of maxEntries',
      { programs: [], maxEntries: { nomap: 1 } },
      "map 'nomap': the object has no map of that name",
    ],
    [
      'map of keySizes',
      { programs: [], keySizes: { nomap: 1 } },
      "map 'nomap': the object has no map of that name",
    ],
  ])('an unknown %s is named', (_, options, message) => {
    expect(refusal(RECORDS_OBJECT, options)).toMatchObject({ code: 'ENOENT' });
    expect(refusal(RECORDS_OBJECT, options).message).toContain(`load ${RECORDS_OBJECT}, ${message}`);
  });

  test('a map that the kernel refuses is named by libbpf’s words', () => {
    const error = refusal(RECORDS_OBJECT, { programs: [], maxEntries: { table: 0 } });
    expect(error.message).toContain("map 'table'");
  });

  test.each<[string, unknown]>([
    ['no options', undefined],
    ['no programs', {}],
    ['programs that are no strings', { programs: [1] }],
    ['a capacity that is no number', { programs: [], maxEntries: { table: 'many' } }],
    ['a negative capacity', { programs: [], maxEntries: { table: -1 } }],
    ['constants that are no object', { programs: [], constants: 1 }],
  ])('%s: TypeError', (_, options) => {
    expect(() => native.load(RECORDS_OBJECT, options as LoadOptions)).toThrow(TypeError);
  });
});

describe('files that are no object', () => {
  test('a missing file', () => {
    const error = refusal(join(directory, 'missing.o'), { programs: [] });
    expect(error).toMatchObject({ code: 'ENOENT' });
    expect(error.message).toContain('missing.o');
  });

  test('a path with a zero byte is a TypeError', () => {
    expect(() => native.load('/tmp/a\0b', { programs: [] })).toThrow(TypeError);
  });

  test('text, and a directory', () => {
    const text = join(directory, 'text.o');
    writeFileSync(text, 'not an object');
    expect(refusal(text, { programs: [] }).code).toBe('LIBBPF_FORMAT');
    expect(refusal(directory, { programs: [] }).message).toContain(directory);
  });

  test('an object cut off anywhere is an error, never a crash', () => {
    const whole = readFileSync(RECORDS_OBJECT);
    const path = join(directory, 'cut.o');
    for (let length = 0; length < whole.length - 64; length += 97) {
      writeFileSync(path, whole.subarray(0, length));
      expect(isNativeError(thrownBy(() => native.load(path, { programs: [] })))).toBe(true);
    }
  });
});

describe('programs', () => {
  test('field 72: a rejected one comes with the verifier’s log', () => {
    const error = refusal(RECORDS_OBJECT, { programs: ['rejected'] });
    expect(error.code).toBe('EACCES');
    expect(error.message).toContain("prog 'rejected': failed to load");
    expect(error.verifierLog).toMatch(/R1 invalid mem access '(scalar|inv)'/);
    expect(error.message).not.toContain('BEGIN PROG LOAD LOG');
  });

  test('only the wanted ones are loaded', () => {
    const object = native.load(RECORDS_OBJECT, watchThisProcess(0, 0));
    expect([...object.programs.keys()]).toEqual(['write_on_system_call']);
    object.close();
  });

  test('run between attach and close of the link, and are found by their id', () => {
    const object = native.load(RECORDS_OBJECT, watchThisProcess(1, 0));
    const program = object.programs.get('write_on_system_call');
    if (program === undefined) throw new Error('the program was not loaded');
    expect(program.tag).toMatch(/^[0-9a-f]{16}$/);
    const counters = mapOf(object.maps, 'counters');

    trigger();
    expect(counter(counters, 0)).toBe(0n);
    const link = program.attach();
    expect(link.programId).toBe(program.id);
    trigger();
    trigger();
    expect(counter(counters, 0)).toBe(2n);
    link.close();
    link.close();
    trigger();
    expect(counter(counters, 0)).toBe(2n);

    const byId = native.programById(program.id);
    expect(byId).toMatchObject({
      id: program.id,
      tag: program.tag,
      name: 'write_on_system_call'.slice(0, 15),
    });
    expect(byId.info()).toEqual(program.info());
    expect(typeof program.info().recursionMisses).toBe('bigint');
    object.close();
    expect(thrownBy(() => program.attach())).toMatchObject({ code: 'EBADF', operation: 'attach' });
    expect(thrownBy(() => program.info())).toMatchObject({ code: 'EBADF' });
    expect(thrownBy(() => native.programById(4_294_967_295))).toMatchObject({ code: 'ENOENT' });
  });

  test('a link keeps its program running after the object is closed', () => {
    const object = native.load(RECORDS_OBJECT, watchThisProcess(1, 0));
    const link = object.programs.get('write_on_system_call')?.attach();
    const copy = native.load(RECORDS_OBJECT, {
      programs: [],
      reuseMaps: { counters: mapOf(object.maps, 'counters') },
    });
    object.close();
    trigger();
    expect(counter(mapOf(copy.maps, 'counters'), 0)).toBe(1n);
    link?.close();
    copy.close();
  });
});

test('a missing addon is named with the command that builds it', () => {
  expect(() => loadNative('/nowhere/addon.node')).toThrow(
    /cannot load the addon \/nowhere\/addon\.node: .*make -C agent\/native/,
  );
});
