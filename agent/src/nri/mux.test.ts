import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMuxDecoder, encodeMuxFrames, MUX_MAX_PAYLOAD_BYTES, NriProtocolError } from './mux.ts';

const FUZZ = { seed: 1_722_001, numRuns: 500 };

function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let offset = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(offset, offset + size));
    offset += size;
  }
  return [...pieces, bytes.subarray(offset)];
}

/** All payload bytes by connection id, in the order in which they came. */
function decodeAll(pieces: readonly Uint8Array[]): Map<number, Buffer> {
  const streams = new Map<number, Buffer>();
  const decode = createMuxDecoder((id, payload) => {
    streams.set(id, Buffer.concat([streams.get(id) ?? Buffer.alloc(0), payload]));
  });
  for (const piece of pieces) decode(piece);
  return streams;
}

/** Payload lengths of the frames in an encoded stream. */
function frameSizes(frames: Uint8Array): number[] {
  const view = Buffer.from(frames);
  const sizes: number[] = [];
  for (let at = 0; at < view.length; at += 8 + view.readUInt32BE(at + 4))
    sizes.push(view.readUInt32BE(at + 4));
  return sizes;
}

describe('mux frames', () => {
  it('carries connection id and length as big-endian words', () => {
    expect(Buffer.from(encodeMuxFrames(2, Buffer.from('abc'))).toString('hex')).toBe(
      '0000000200000003616263',
    );
  });

  it.each([
    [0, []],
    [1, [1]],
    [4_096, [4_096]],
    [4_097, [4_096, 1]],
    [10_000, [4_096, 4_096, 1_808]],
  ])('cuts a message of %i bytes into frames that the Go reader survives', (length, sizes) => {
    expect(frameSizes(encodeMuxFrames(1, new Uint8Array(length)))).toEqual(sizes);
  });

  it('writes all but the first frame as large as it is told', () => {
    expect(frameSizes(encodeMuxFrames(1, new Uint8Array(100_000), MUX_MAX_PAYLOAD_BYTES))).toEqual([
      4_096, 95_904,
    ]);
  });

  it('takes a frame of the largest size and refuses one byte more before reading it', () => {
    const header = Buffer.alloc(8);
    header.writeUInt32BE(1, 0);
    header.writeUInt32BE(MUX_MAX_PAYLOAD_BYTES, 4);
    expect(decodeAll([header, new Uint8Array(MUX_MAX_PAYLOAD_BYTES)]).get(1)?.length).toBe(
      MUX_MAX_PAYLOAD_BYTES,
    );
    header.writeUInt32BE(MUX_MAX_PAYLOAD_BYTES + 1, 4);
    expect(() => decodeAll([header])).toThrow(
      new NriProtocolError('NRI frame for connection 1 announces 4194315 bytes, expected at most 4194314'),
    );
  });

  it('gives the same streams however the bytes are cut', () => {
    const message = fc.record({
      id: fc.integer({ min: 0, max: 3 }),
      data: fc.uint8Array({ maxLength: 9_000 }),
    });
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 8 }),
        fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 40 }),
        (messages, sizes) => {
          const bytes = Buffer.concat(messages.map(({ id, data }) => encodeMuxFrames(id, data)));
          const expected = new Map<number, Buffer>();
          for (const { id, data } of messages) {
            if (data.length === 0) continue;
            expected.set(id, Buffer.concat([expected.get(id) ?? Buffer.alloc(0), data]));
          }
          expect(decodeAll(cut(bytes, sizes))).toEqual(expected);
        },
      ),
      FUZZ,
    );
  });

  it('gives the same streams when every byte arrives alone', () => {
    const bytes = Buffer.concat([
      encodeMuxFrames(1, Buffer.from('first')),
      encodeMuxFrames(2, Buffer.from('second')),
    ]);
    const streams = decodeAll(Array.from(bytes, (byte) => Uint8Array.of(byte)));
    expect(String(streams.get(1))).toBe('first');
    expect(String(streams.get(2))).toBe('second');
  });

  it('answers garbage with payloads or one clean error', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), (pieces) => {
        const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
        try {
          const streams = decodeAll(pieces);
          const delivered = [...streams.values()].reduce((sum, stream) => sum + stream.length, 0);
          expect(delivered).toBeLessThanOrEqual(total);
        } catch (error) {
          expect(error).toBeInstanceOf(NriProtocolError);
        }
      }),
      FUZZ,
    );
  });
});
