import { expect, it } from 'vitest';
import { createBootClock } from './boot-clock.ts';
import { SEEN_KEY_LAYOUT, SEEN_VALUE_LAYOUT } from './gen/abi.ts';
import { openExampleMaps } from './kernel-maps-example.ts';
import { loadNative } from './native.ts';
import { createSeenReading, forgetLearned } from './seen-reading.ts';

const SECOND_NS = 1_000_000_000n;
const clock = createBootClock({ uptime: () => 100, now: () => 1_000_000 });

/** A map whose entries, by path hash, were last touched at these seconds after boot. */
function reading() {
  const touched = new Map<bigint, bigint>();
  const read = createSeenReading(
    {
      entries() {
        const keys = Buffer.alloc(touched.size * SEEN_KEY_LAYOUT.size);
        const values = Buffer.alloc(touched.size * SEEN_VALUE_LAYOUT.size);
        [...touched].forEach(([hash, seconds], index) => {
          keys.writeBigUInt64LE(hash, index * SEEN_KEY_LAYOUT.size + SEEN_KEY_LAYOUT.offsets.path_hash);
          const value = index * SEEN_VALUE_LAYOUT.size + SEEN_VALUE_LAYOUT.offsets.last_ns;
          values.writeBigUInt64LE(seconds * SECOND_NS, value);
        });
        return Promise.resolve({ keys, values, count: touched.size });
      },
    },
    clock,
  );
  return { touched, hashes: async () => (await read(() => undefined)).map(({ pathHash }) => pathHash) };
}

it('tells all at first, then what was touched since, also a little before the newest', async () => {
  const { touched, hashes } = reading();
  touched.set(1n, 10n).set(2n, 50n).set(3n, 90n);
  expect(await hashes()).toEqual([1n, 2n, 3n]);
  expect(await hashes()).toEqual([3n]);
  touched.set(1n, 89n).set(2n, 88n).set(4n, 95n);
  expect(await hashes()).toEqual([1n, 3n, 4n]);
  touched.delete(4n);
  expect(await hashes()).toEqual([]);
});

it('leaves the loop to others while a whole map is told', async () => {
  const { touched, hashes } = reading();
  for (let hash = 0n; hash < 100_000n; hash++) touched.set(hash, 1n);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const told = await hashes();
  clearInterval(timer);
  expect(told).toHaveLength(100_000);
  expect(turns).toBeGreaterThan(5);
});

it('lets the kernel tell again what was learned, and leaves violations counted', async () => {
  const { maps, close } = openExampleMaps(loadNative());
  const keyOf = (hash: bigint, modeAndReason: number): Buffer => {
    const key = Buffer.alloc(SEEN_KEY_LAYOUT.size);
    key.writeBigUInt64LE(hash, SEEN_KEY_LAYOUT.offsets.path_hash);
    key.writeUInt32LE(modeAndReason, SEEN_KEY_LAYOUT.offsets.mode_and_reason);
    return key;
  };
  const kinds = [0, 0, 1 | (1 << 8), 2 | (1 << 8)].map((kind, hash) => keyOf(BigInt(hash), kind));
  for (const key of kinds) maps.seen.update(key, Buffer.alloc(SEEN_VALUE_LAYOUT.size));
  await forgetLearned(maps.seen);
  expect(kinds.map((key) => maps.seen.lookup(key) !== undefined)).toEqual([false, false, true, true]);
  await forgetLearned(maps.seen);
  close();
});
