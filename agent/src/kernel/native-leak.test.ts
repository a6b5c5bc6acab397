import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { expect, test } from 'vitest';

import { loadNative } from './native.ts';
import {
  hashMap,
  key,
  mapOf,
  numberedKeys,
  RECORDS_OBJECT,
  thrownBy,
  trigger,
  value,
  watchThisProcess,
} from './native-test-objects.ts';

const ROUNDS = 1000;
const RSS_GROWTH_MAX_BYTES = 12 * 1024 * 1024;

const native = loadNative();
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function descriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

async function loadFillAndClose(): Promise<void> {
  const object = native.load(RECORDS_OBJECT, watchThisProcess(3, 3));
  const table = mapOf(object.maps, 'table');
  await table.updateMany(numberedKeys(16, 4), new Uint8Array(16 * 8), 16);
  await table.entries();
  object.close();
}

async function attachReadAndClose(): Promise<void> {
  const object = native.load(RECORDS_OBJECT, watchThisProcess(3, 3));
  const link = object.programs.get('write_on_system_call')?.attach();
  const rings = [mapOf(object.maps, 'first'), mapOf(object.maps, 'second')];
  const reading = native.startRings(rings, () => undefined, { maxBatch: 16 });
  trigger();
  await reading.stop();
  link?.close();
  object.close();
}

function failInEveryWay(): void {
  const full = native.createMap(hashMap({ maxEntries: 1 }));
  full.update(key(1), value(1n));
  const actions = [
    () => native.load('/nowhere.o', { programs: [] }),
    () => native.load(RECORDS_OBJECT, { programs: ['rejected'] }),
    () => native.load(RECORDS_OBJECT, { programs: [], maxEntries: { table: 0 } }),
    () => native.load(RECORDS_OBJECT, { programs: [], constants: { unknown: 1 } }),
    () => native.load(RECORDS_OBJECT, { programs: [], reuseMaps: { table: full } }),
    () => native.openPinnedMap('/nowhere'),
    () => native.startRings([full], () => undefined, { maxBatch: 1 }),
    () => full.update(key(2), value(1n)),
    () => native.tryLock('/nowhere/lock'),
  ];
  for (const action of actions) thrownBy(action);
  full.close();
}

test.each([
  ['loading, filling and closing', ROUNDS, loadFillAndClose],
  ['attaching, reading and closing', ROUNDS / 10, attachReadAndClose],
] as const)('%s %d times leaves no descriptor and no memory behind', async (_, rounds, round) => {
  const measure = (): number => {
    collectGarbage();
    return process.memoryUsage.rss();
  };
  for (let i = 0; i < rounds / 5; i++) await round();
  const [openBefore, rssBefore] = [descriptors(), measure()];
  for (let i = 0; i < rounds; i++) await round();
  const [openAfter, rssAfter] = [descriptors(), measure()];
  expect(openAfter).toBe(openBefore);
  expect(rssAfter - rssBefore).toBeLessThan(RSS_GROWTH_MAX_BYTES);
});

test('failures leave no descriptor behind', () => {
  failInEveryWay();
  const before = descriptors();
  for (let round = 0; round < 50; round++) failInEveryWay();
  expect(descriptors()).toBe(before);
});

test('an object that is forgotten is closed by the collector', async () => {
  collectGarbage();
  await new Promise((resolve) => setImmediate(resolve));
  const before = descriptors();
  for (let round = 0; round < 20; round++) native.load(RECORDS_OBJECT, { programs: [] });
  expect(descriptors()).toBeGreaterThan(before);
  for (let round = 0; round < 20 && descriptors() > before; round++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(descriptors()).toBe(before);
});
