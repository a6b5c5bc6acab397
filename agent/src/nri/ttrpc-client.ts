import { nriCodecs } from './messages.ts';
import {
  createTtrpcDecoder,
  encodeTtrpcFrame,
  TTRPC_MAX_DATA_BYTES,
  TTRPC_REQUEST,
  TTRPC_RESPONSE,
} from './ttrpc-frame.ts';
import type { TtrpcFrame } from './ttrpc-frame.ts';
import { TtrpcCode, TtrpcStatusError } from './ttrpc-status.ts';

const MAX_STREAM_ID = 0xffff_ffff;

export interface TtrpcClient {
  /**
   * Makes one unary call and returns the encoded reply.
   *
   * Rejects with {@link TtrpcStatusError}: the peer's status, `deadlineExceeded` when no reply came
   * within `timeoutMs`, `resourceExhausted` when either message is too long. Rejects with the
   * reason given to `fail` when the connection ends first.
   */
  call(service: string, method: string, payload: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  /** Takes the connection's next bytes; replies to no pending call are ignored. */
  receive(bytes: Uint8Array): void;
  /** Rejects all pending and later calls. */
  fail(reason: Error): void;
}

interface PendingCall {
  resolve(frame: TtrpcFrame): void;
  reject(error: Error): void;
}

/** The calling end of one logical connection; `send` takes whole ttrpc messages. */
export function createTtrpcClient(send: (message: Uint8Array) => void): TtrpcClient {
  const pending = new Map<number, PendingCall>();
  let nextStreamId = 1;
  let failure: Error | undefined;

  const exchange = async (
    request: Uint8Array,
    timeoutMs: number,
    onTimeout: () => Error,
  ): Promise<TtrpcFrame> => {
    if (failure !== undefined) throw failure;
    const streamId = nextStreamId;
    if (streamId > MAX_STREAM_ID) throw new Error('all ttrpc stream ids of this connection are used up');
    nextStreamId += 2;
    const { promise, resolve, reject } = Promise.withResolvers<TtrpcFrame>();
    const timer = setTimeout(() => reject(onTimeout()), timeoutMs);
    pending.set(streamId, { resolve, reject });
    try {
      send(encodeTtrpcFrame(streamId, TTRPC_REQUEST, request));
      return await promise;
    } finally {
      clearTimeout(timer);
      pending.delete(streamId);
    }
  };

  return {
    async call(service, method, payload, timeoutMs) {
      const request = nriCodecs().request.encode({
        service,
        method,
        payload,
        timeoutNano: Math.round(timeoutMs * 1e6),
      });
      if (request.length > TTRPC_MAX_DATA_BYTES) throw tooLong(method, 'request', request.length);
      const frame = await exchange(
        request,
        timeoutMs,
        () =>
          new TtrpcStatusError(TtrpcCode.deadlineExceeded, `no reply to ${method} within ${timeoutMs} ms`),
      );
      if (frame.data === undefined) throw tooLong(method, 'reply', frame.length);
      const response = nriCodecs().response.decode(frame.data);
      if (response.status !== null && response.status.code !== TtrpcCode.ok) {
        throw new TtrpcStatusError(response.status.code, response.status.message);
      }
      return response.payload;
    },
    receive: createTtrpcDecoder((frame) => {
      if (frame.type === TTRPC_RESPONSE) pending.get(frame.streamId)?.resolve(frame);
    }),
    fail(reason) {
      failure ??= reason;
      for (const call of pending.values()) call.reject(failure);
      pending.clear();
    },
  };
}

function tooLong(method: string, what: 'request' | 'reply', length: number): TtrpcStatusError {
  return new TtrpcStatusError(
    TtrpcCode.resourceExhausted,
    `the ${what} of ${method} holds ${length} bytes, expected at most ${TTRPC_MAX_DATA_BYTES}`,
  );
}
