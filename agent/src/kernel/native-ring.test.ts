import { setImmediate, setTimeout } from 'node:timers/promises';

import { describe, expect, test } from 'vitest';

import { loadNative, type NativeMap, type RingBatch } from './native.ts';
import { counter, hashMap, mapOf, RECORDS_OBJECT, trigger, watchThisProcess } from './native-test-objects.ts';

const native = loadNative();

interface Watch {
  readonly rings: readonly [NativeMap, NativeMap];
  readonly counters: NativeMap;
  readonly end: () => void;
}

function watch(first: number, second: number): Watch {
  const object = native.load(RECORDS_OBJECT, watchThisProcess(first, second));
  const link = object.programs.get('write_on_system_call')?.attach();
  return {
    rings: [mapOf(object.maps, 'first'), mapOf(object.maps, 'second')],
    counters: mapOf(object.maps, 'counters'),
    end: () => {
      link?.close();
      object.close();
    },
  };
}

/** The records' numbers; throws if one has not the length and bytes that the program gave it. */
function numbersIn({ data, offsets }: RingBatch): number[] {
  return Array.from({ length: offsets.length - 1 }, (_, i) => {
    const record = data.subarray(offsets[i], offsets[i + 1]);
    const number = Number(new DataView(record.buffer, record.byteOffset).getBigUint64(0, true));
    const intact =
      record.length === 16 + (number & 7) * 8 && record.subarray(8).every((byte) => byte === (number & 255));
    if (!intact) throw new Error(`record ${number} is damaged`);
    return number;
  });
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 5000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('waited for 5 s in vain');
    await setTimeout(1);
  }
}

const numbersTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('rings', () => {
  test('arrive whole, in order, each with its index, in batches of at most maxBatch', async () => {
    const { rings, end } = watch(100, 30);
    const received: [number[], number[]] = [[], []];
    let largest = 0;
    const reading = native.startRings(
      rings,
      (ring, batch) => {
        const numbers = numbersIn(batch);
        largest = Math.max(largest, numbers.length);
        received[ring as 0 | 1].push(...numbers);
      },
      { maxBatch: 32 },
    );
    for (let round = 1; round <= 50; round++) {
      trigger();
      await until(() => received[0].length === round * 100 && received[1].length === round * 30);
    }
    await reading.stop();
    end();
    expect(received).toEqual([numbersTo(5000), numbersTo(1500)]);
    expect(largest).toBe(32);
  });

  test('what was written before the start is read too', async () => {
    const { rings, end } = watch(3, 0);
    trigger();
    const received: number[] = [];
    const reading = native.startRings(rings, (_, batch) => received.push(...numbersIn(batch)), {
      maxBatch: 8,
    });
    await until(() => received.length === 3);
    await reading.stop();
    end();
  });

  test('a storm in one ring delays the other by no more than a batch', async () => {
    const { rings, end } = watch(500, 1);
    const order: number[] = [];
    trigger();
    const reading = native.startRings(rings, (ring) => order.push(ring), { maxBatch: 16 });
    await until(() => order.length >= 10);
    expect(order.slice(0, 3)).toEqual([0, 1, 0]);
    await reading.stop();
    end();
  });

  test('a receiver that is busy leaves the records in the ring, where the program counts what does not fit', async () => {
    const { rings, counters, end } = watch(1000, 0);
    const received: number[] = [];
    const reading = native.startRings(rings, (_, batch) => received.push(...numbersIn(batch)), {
      maxBatch: 64,
    });
    for (let i = 0; i < 50; i++) trigger();
    const dropped = counter(counters, 1);
    expect(dropped).toBeGreaterThan(0n);
    await until(() => BigInt(received.length) === counter(counters, 0) - dropped);
    await reading.stop();
    expect(new Set(received).size).toBe(received.length);
    end();
  });

  test('one turn of the loop brings one batch, however many records wait', async () => {
    const { rings, end } = watch(1000, 0);
    let batches = 0;
    const reading = native.startRings(rings, () => batches++, { maxBatch: 1 });
    trigger();
    let most = 0;
    const deadline = Date.now() + 5000;
    while (batches < 100 && Date.now() < deadline) {
      const before = batches;
      await setImmediate();
      most = Math.max(most, batches - before);
    }
    expect(batches).toBe(100);
    expect(most).toBe(1);
    await reading.stop();
    end();
  });

  test('stop delivers what was taken and leaves the rest for the next reader', async () => {
    const { rings, end } = watch(500, 0);
    const received: number[] = [];
    const take = (_: number, batch: RingBatch): void => void received.push(...numbersIn(batch));
    const reading = native.startRings(rings, take, { maxBatch: 10 });
    trigger();
    await until(() => received.length >= 10);
    await Promise.all([reading.stop(), reading.stop()]);
    const before = received.length;
    expect(before).toBeLessThan(500);
    const next = native.startRings(rings, take, { maxBatch: 1000 });
    await until(() => received.length === 500);
    await next.stop();
    end();
    expect(received).toEqual(numbersTo(500));
  });

  test('a map may be closed while it is read', async () => {
    const { rings, end } = watch(5, 0);
    let records = 0;
    const reading = native.startRings(rings, (_, batch) => (records += batch.offsets.length - 1), {
      maxBatch: 8,
    });
    for (const ring of rings) ring.close();
    trigger();
    await until(() => records === 5);
    await reading.stop();
    end();
  });
});

describe('arguments', () => {
  const ignore = (): void => undefined;

  test('a map that is no ring buffer is named', () => {
    const map = native.createMap(hashMap({ name: 'no_ring' }));
    expect(() => native.startRings([map], ignore, { maxBatch: 1 })).toThrow("startRings map 'no_ring'");
    map.close();
  });

  test('no ring, no receiver, no batch', () => {
    const ring = native.createMap({ name: 'ring', type: 27, keySize: 0, valueSize: 0, maxEntries: 65_536 });
    expect(() => native.startRings([], ignore, { maxBatch: 1 })).toThrow(TypeError);
    expect(() => native.startRings([ring], undefined as unknown as typeof ignore, { maxBatch: 0 })).toThrow(
      RangeError,
    );
    expect(() => native.startRings([ring], ignore, { maxBatch: 0 })).toThrow(RangeError);
    expect(() => native.startRings([ring], ignore, { maxBatch: 65_537 })).toThrow(RangeError);
    ring.close();
  });
});
