/** Bytes of a ttrpc header: data length, stream id (both big-endian 32-bit), type, flags. */
export const TTRPC_HEADER_BYTES = 10;

/** Largest data of one ttrpc message. */
export const TTRPC_MAX_DATA_BYTES = 4_194_304;

/** Message types; streaming data (3) is not used by NRI and skipped like any unknown type. */
export const TTRPC_REQUEST = 1;
export const TTRPC_RESPONSE = 2;

/** One message, or, when `data` is missing, one whose data was too long and has been left out. */
export interface TtrpcFrame {
  streamId: number;
  type: number;
  /** Length that the header announced. */
  length: number;
  data: Uint8Array | undefined;
}

/**
 * Puts the messages of one logical connection together again, however their bytes are cut.
 *
 * Holds at most one message ({@link TTRPC_MAX_DATA_BYTES}). A longer one is reported as soon as its
 * header is complete, without data, and its bytes are skipped. Any byte stream is a sequence of
 * frames, so this never fails by itself; what `onFrame` throws passes through.
 *
 * @returns a function that takes the next bytes
 */
export function createTtrpcDecoder(onFrame: (frame: TtrpcFrame) => void): (bytes: Uint8Array) => void {
  const header = Buffer.alloc(TTRPC_HEADER_BYTES);
  let headerFilled = 0;
  let current: { frame: TtrpcFrame; data: Buffer; filled: number } | undefined;
  let toSkip = 0;

  const headerComplete = (): void => {
    headerFilled = 0;
    const length = header.readUInt32BE(0);
    const frame = { streamId: header.readUInt32BE(4), type: header.readUInt8(8), length };
    if (length > TTRPC_MAX_DATA_BYTES) {
      toSkip = length;
      onFrame({ ...frame, data: undefined });
    } else if (length === 0) {
      onFrame({ ...frame, data: Buffer.alloc(0) });
    } else {
      const data = Buffer.allocUnsafe(length);
      current = { frame: { ...frame, data }, data, filled: 0 };
    }
  };

  return (bytes) => {
    let offset = 0;
    while (offset < bytes.length) {
      const left = bytes.length - offset;
      if (toSkip > 0) {
        const skipped = Math.min(left, toSkip);
        toSkip -= skipped;
        offset += skipped;
      } else if (current === undefined) {
        const taken = Math.min(left, TTRPC_HEADER_BYTES - headerFilled);
        header.set(bytes.subarray(offset, offset + taken), headerFilled);
        headerFilled += taken;
        offset += taken;
        if (headerFilled === TTRPC_HEADER_BYTES) headerComplete();
      } else {
        const { frame, data } = current;
        const taken = Math.min(left, data.length - current.filled);
        data.set(bytes.subarray(offset, offset + taken), current.filled);
        current.filled += taken;
        offset += taken;
        if (current.filled === data.length) {
          current = undefined;
          onFrame(frame);
        }
      }
    }
  };
}

/** Encodes one message. `data` must not be longer than {@link TTRPC_MAX_DATA_BYTES}. */
export function encodeTtrpcFrame(streamId: number, type: number, data: Uint8Array): Uint8Array {
  if (data.length > TTRPC_MAX_DATA_BYTES) {
    throw new RangeError(
      `ttrpc message holds ${data.length} bytes, expected at most ${TTRPC_MAX_DATA_BYTES}`,
    );
  }
  const frame = Buffer.allocUnsafe(TTRPC_HEADER_BYTES + data.length);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(streamId, 4);
  frame.writeUInt8(type, 8);
  frame.writeUInt8(0, 9);
  frame.set(data, TTRPC_HEADER_BYTES);
  return frame;
}
