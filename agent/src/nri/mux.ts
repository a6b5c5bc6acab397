/** Bytes of a mux frame's header: connection id and payload length, both big-endian 32-bit. */
export const MUX_HEADER_BYTES = 8;

/** Largest payload of one mux frame: one whole ttrpc message with its header. */
export const MUX_MAX_PAYLOAD_BYTES = 4_194_314;

/**
 * Largest frame that may begin a ttrpc message. The Go reader takes a whole frame into a buffer of
 * this size while it waits for a message header, and fails when the frame is larger.
 */
export const MUX_FIRST_FRAME_BYTES = 4_096;

/** Logical connections of the NRI socket. */
export const PLUGIN_CONNECTION_ID = 1;
export const RUNTIME_CONNECTION_ID = 2;

/** The peer broke the protocol in a way that leaves the byte stream without meaning. */
export class NriProtocolError extends Error {
  override readonly name = 'NriProtocolError';
}

/**
 * Splits the socket's byte stream into the payloads of its logical connections.
 *
 * Payloads are handed on as they arrive, so a frame may come in several pieces and nothing is
 * buffered here but a header. `onPayload` gets a view that is only valid during the call.
 *
 * @returns a function that takes the next bytes; it throws {@link NriProtocolError} for a frame that
 *   announces more than {@link MUX_MAX_PAYLOAD_BYTES}, after which it must not be called again.
 */
export function createMuxDecoder(
  onPayload: (connectionId: number, payload: Uint8Array) => void,
): (bytes: Uint8Array) => void {
  const header = Buffer.alloc(MUX_HEADER_BYTES);
  let headerFilled = 0;
  let connectionId = 0;
  let remaining = 0;

  return (bytes) => {
    let offset = 0;
    while (offset < bytes.length) {
      if (remaining > 0) {
        const end = Math.min(bytes.length, offset + remaining);
        remaining -= end - offset;
        onPayload(connectionId, bytes.subarray(offset, end));
        offset = end;
        continue;
      }
      const end = Math.min(bytes.length, offset + MUX_HEADER_BYTES - headerFilled);
      header.set(bytes.subarray(offset, end), headerFilled);
      headerFilled += end - offset;
      offset = end;
      if (headerFilled < MUX_HEADER_BYTES) return;
      headerFilled = 0;
      connectionId = header.readUInt32BE(0);
      remaining = header.readUInt32BE(4);
      if (remaining > MUX_MAX_PAYLOAD_BYTES) {
        throw new NriProtocolError(
          `NRI frame for connection ${connectionId} announces ${remaining} bytes, expected at most ${MUX_MAX_PAYLOAD_BYTES}`,
        );
      }
    }
  };
}

/**
 * Wraps one ttrpc message into mux frames for a logical connection. The first frame holds at most
 * {@link MUX_FIRST_FRAME_BYTES}; `laterFrameBytes` bounds the others (the Go side writes all the
 * rest as one frame).
 */
export function encodeMuxFrames(
  connectionId: number,
  message: Uint8Array,
  laterFrameBytes: number = MUX_FIRST_FRAME_BYTES,
): Uint8Array {
  const sizes: number[] = [];
  for (let left = message.length; left > 0;) {
    const size = Math.min(left, sizes.length === 0 ? MUX_FIRST_FRAME_BYTES : laterFrameBytes);
    sizes.push(size);
    left -= size;
  }
  const frames = Buffer.allocUnsafe(message.length + sizes.length * MUX_HEADER_BYTES);
  let from = 0;
  let to = 0;
  for (const size of sizes) {
    frames.writeUInt32BE(connectionId, to);
    frames.writeUInt32BE(size, to + 4);
    frames.set(message.subarray(from, from + size), to + MUX_HEADER_BYTES);
    from += size;
    to += MUX_HEADER_BYTES + size;
  }
  return frames;
}
