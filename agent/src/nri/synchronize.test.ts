import { describe, expect, it } from 'vitest';
import { nriCodecs } from './messages.ts';
import { createSynchronizeCollector, SYNCHRONIZE_MAX_BYTES, SYNCHRONIZE_MAX_OBJECTS } from './synchronize.ts';

/** A part that holds `count` empty containers: two bytes each on the wire. */
function emptyContainers(count: number, more: boolean): Buffer {
  return Buffer.concat([Buffer.alloc(2 * count, Buffer.from([0x12, 0])), Buffer.from(more ? [0x18, 1] : [])]);
}

describe('the parts of a Synchronize', () => {
  it('give the state with the last one only, and start afresh after it', () => {
    const collect = createSynchronizeCollector();
    expect(collect(emptyContainers(2, true))).toBeUndefined();
    expect(collect(emptyContainers(0, true))).toBeUndefined();
    expect(collect(emptyContainers(3, false))?.containers).toHaveLength(5);
    expect(collect(emptyContainers(1, false))?.containers).toHaveLength(1);
  });

  it('may name as many objects as the limit and not one more', () => {
    const collect = createSynchronizeCollector();
    expect(collect(emptyContainers(SYNCHRONIZE_MAX_OBJECTS, false))?.containers).toHaveLength(
      SYNCHRONIZE_MAX_OBJECTS,
    );
    expect(collect(emptyContainers(SYNCHRONIZE_MAX_OBJECTS - 1, true))).toBeUndefined();
    expect(() => collect(emptyContainers(2, false))).toThrow('names more than 65536 pods and containers');
  });

  it('are counted before they are decoded', () => {
    const before = process.memoryUsage().heapUsed;
    expect(() => createSynchronizeCollector()(emptyContainers(2_000_000, false))).toThrow('names more than');
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1_048_576);
  });

  it('may hold as many bytes as the limit and not more', () => {
    const name = 'x'.repeat(4_000_000);
    const part = nriCodecs().synchronize.encode({ pods: [], containers: [], more: true });
    const padding = Buffer.concat([
      Buffer.from([0xfa, 0x01, 0x80, 0x92, 0xf4, 0x01]),
      Buffer.from(name),
      part,
    ]);
    const collect = createSynchronizeCollector();
    const fitting = Math.floor(SYNCHRONIZE_MAX_BYTES / padding.length);
    for (let n = 0; n < fitting; n += 1) expect(collect(padding)).toBeUndefined();
    expect(() => collect(padding)).toThrow('holds more than 67108864 bytes');
    expect(collect(emptyContainers(1, false))?.containers).toHaveLength(1);
  });

  it('that are no such message drop what came before', () => {
    const collect = createSynchronizeCollector();
    collect(emptyContainers(2, true));
    expect(() => collect(Buffer.from([0x12, 0xff]))).toThrow();
    expect(collect(emptyContainers(1, false))?.containers).toHaveLength(1);
  });
});
