import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTtrpcDecoder, encodeTtrpcFrame, TTRPC_MAX_DATA_BYTES, TTRPC_REQUEST } from './ttrpc-frame.ts';
import type { TtrpcFrame } from './ttrpc-frame.ts';

const FUZZ = { seed: 1_722_002, numRuns: 500 };

function decodeAll(pieces: Iterable<Uint8Array>): TtrpcFrame[] {
  const frames: TtrpcFrame[] = [];
  const decode = createTtrpcDecoder((frame) => frames.push(frame));
  for (const piece of pieces) decode(piece);
  return frames;
}

function* cut(bytes: Uint8Array, sizes: readonly number[]): Generator<Uint8Array> {
  let offset = 0;
  for (const size of sizes) {
    yield bytes.subarray(offset, offset + size);
    offset += size;
  }
  yield bytes.subarray(offset);
}

function header(length: number, streamId: number, type: number): Buffer {
  const bytes = Buffer.alloc(10);
  bytes.writeUInt32BE(length, 0);
  bytes.writeUInt32BE(streamId, 4);
  bytes.writeUInt8(type, 8);
  return bytes;
}

describe('ttrpc frames', () => {
  it('has length, stream id, type and flags before the data', () => {
    expect(Buffer.from(encodeTtrpcFrame(3, TTRPC_REQUEST, Buffer.from('ab'))).toString('hex')).toBe(
      '000000020000000301006162',
    );
  });

  it('refuses to encode data beyond the limit', () => {
    expect(() => encodeTtrpcFrame(1, 1, new Uint8Array(TTRPC_MAX_DATA_BYTES + 1))).toThrow(
      'ttrpc message holds 4194305 bytes, expected at most 4194304',
    );
  });

  it('gives the same messages however the bytes are cut', () => {
    const frame = fc.record({
      streamId: fc.nat(0xffff_ffff),
      type: fc.nat(255),
      data: fc.uint8Array({ maxLength: 3_000 }),
    });
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 40 }),
        (frames, sizes) => {
          const bytes = Buffer.concat(frames.map((f) => encodeTtrpcFrame(f.streamId, f.type, f.data)));
          const expected = frames.map((f) => ({ ...f, length: f.data.length, data: Buffer.from(f.data) }));
          expect(decodeAll(cut(bytes, sizes))).toEqual(expected);
        },
      ),
      FUZZ,
    );
  });

  it('takes the largest message and skips a larger one without keeping it', () => {
    const largest = encodeTtrpcFrame(1, TTRPC_REQUEST, new Uint8Array(TTRPC_MAX_DATA_BYTES));
    const tooLong = [header(TTRPC_MAX_DATA_BYTES + 1, 3, 1), new Uint8Array(TTRPC_MAX_DATA_BYTES + 1)];
    const frames = decodeAll([largest, ...tooLong, encodeTtrpcFrame(5, TTRPC_REQUEST, Buffer.from('x'))]);
    expect(frames.map(({ streamId, length, data }) => [streamId, length, data?.length])).toEqual([
      [1, TTRPC_MAX_DATA_BYTES, TTRPC_MAX_DATA_BYTES],
      [3, TTRPC_MAX_DATA_BYTES + 1, undefined],
      [5, 1, 1],
    ]);
  });

  it('reports an oversized message at its header and holds none of its 4 GiB', () => {
    const frames: TtrpcFrame[] = [];
    const decode = createTtrpcDecoder((frame) => frames.push(frame));
    decode(header(0xffff_ffff, 7, 1));
    expect(frames).toEqual([{ streamId: 7, type: 1, length: 0xffff_ffff, data: undefined }]);
    const before = process.memoryUsage().arrayBuffers;
    const piece = new Uint8Array(65_536);
    for (let n = 0; n < 1_000; n += 1) decode(piece);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4_194_304);
    expect(frames).toHaveLength(1);
  });

  it('turns any bytes into frames that are no larger than the bytes, or into nothing yet', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 20 }), (pieces) => {
        const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
        const held = decodeAll(pieces).reduce((sum, frame) => sum + (frame.data?.length ?? 0), 0);
        expect(held).toBeLessThanOrEqual(total);
      }),
      FUZZ,
    );
  });

  it('gives a truncated message only when its last byte has come', () => {
    const bytes = encodeTtrpcFrame(1, TTRPC_REQUEST, Buffer.from('payload'));
    for (let length = 0; length < bytes.length; length += 1) {
      expect(decodeAll([bytes.subarray(0, length)])).toEqual([]);
      expect(decodeAll([bytes.subarray(0, length), bytes.subarray(length)])).toHaveLength(1);
    }
  });
});
