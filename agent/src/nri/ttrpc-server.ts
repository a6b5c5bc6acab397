import { nriCodecs } from './messages.ts';
import {
  createTtrpcDecoder,
  encodeTtrpcFrame,
  TTRPC_MAX_DATA_BYTES,
  TTRPC_REQUEST,
  TTRPC_RESPONSE,
} from './ttrpc-frame.ts';
import type { TtrpcFrame } from './ttrpc-frame.ts';
import { statusOf, TtrpcCode, TtrpcStatusError } from './ttrpc-status.ts';

/** Calls that may be in progress on one connection; the runtime itself makes them one by one. */
export const MAX_CALLS_IN_PROGRESS = 256;

export interface TtrpcCall {
  service: string;
  method: string;
  payload: Uint8Array;
  /** What was left of the caller's deadline when it sent the call; undefined if it set none. */
  timeoutMs: number | undefined;
}

/**
 * Answers the unary calls that arrive on one logical connection.
 *
 * `handle` returns the encoded reply; what it throws becomes an error reply (a
 * {@link TtrpcStatusError} with its code, anything else as `unknown` with its message). A call that
 * cannot be understood is answered with an error and told to `onMalformed`; it ends nothing.
 *
 * @returns a function that takes the connection's next bytes and does not throw
 */
export function createTtrpcServer(options: {
  send: (message: Uint8Array) => void;
  handle: (call: TtrpcCall) => Promise<Uint8Array>;
  onMalformed: (reason: string) => void;
}): (bytes: Uint8Array) => void {
  let lastStreamId = 0;
  let inProgress = 0;

  const fail = (streamId: number, error: unknown): void => {
    const reply = nriCodecs().response.encode({ status: statusOf(error), payload: new Uint8Array() });
    options.send(encodeTtrpcFrame(streamId, TTRPC_RESPONSE, reply));
  };

  const answer = async (streamId: number, call: TtrpcCall): Promise<void> => {
    inProgress += 1;
    try {
      const payload = await options.handle(call);
      const reply = nriCodecs().response.encode({ status: null, payload });
      if (reply.length > TTRPC_MAX_DATA_BYTES) {
        throw new TtrpcStatusError(
          TtrpcCode.resourceExhausted,
          `the reply to ${call.method} holds ${reply.length} bytes, expected at most ${TTRPC_MAX_DATA_BYTES}`,
        );
      }
      options.send(encodeTtrpcFrame(streamId, TTRPC_RESPONSE, reply));
    } catch (error) {
      fail(streamId, error);
    } finally {
      inProgress -= 1;
    }
  };

  const accept = (frame: TtrpcFrame): TtrpcCall => {
    if (frame.streamId % 2 !== 1) {
      throw new TtrpcStatusError(
        TtrpcCode.invalidArgument,
        `stream id ${frame.streamId} of a request must be odd`,
      );
    }
    if (frame.streamId <= lastStreamId) {
      throw new TtrpcStatusError(
        TtrpcCode.invalidArgument,
        `stream id ${frame.streamId} must be greater than the last one, ${lastStreamId}`,
      );
    }
    lastStreamId = frame.streamId;
    if (frame.data === undefined) {
      throw new TtrpcStatusError(
        TtrpcCode.resourceExhausted,
        `message length ${frame.length} exceeds the maximum of ${TTRPC_MAX_DATA_BYTES} bytes`,
      );
    }
    const request = nriCodecs().request.decode(frame.data);
    const { service, method, payload, timeoutNano } = request;
    return { service, method, payload, timeoutMs: timeoutNano > 0 ? timeoutNano / 1e6 : undefined };
  };

  return createTtrpcDecoder((frame) => {
    if (frame.type !== TTRPC_REQUEST) return;
    let call: TtrpcCall;
    try {
      call = accept(frame);
    } catch (error) {
      options.onMalformed(statusOf(error).message);
      fail(frame.streamId, error);
      return;
    }
    if (inProgress >= MAX_CALLS_IN_PROGRESS) {
      fail(
        frame.streamId,
        new TtrpcStatusError(
          TtrpcCode.resourceExhausted,
          `${MAX_CALLS_IN_PROGRESS} calls are in progress already; repeat ${call.method} when some have ended`,
        ),
      );
      return;
    }
    void answer(frame.streamId, call);
  });
}
