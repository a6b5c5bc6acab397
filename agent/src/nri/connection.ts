import type { Socket } from 'node:net';
import { createMuxDecoder, encodeMuxFrames } from './mux.ts';
import { createTtrpcClient } from './ttrpc-client.ts';
import type { TtrpcClient } from './ttrpc-client.ts';
import { createTtrpcServer } from './ttrpc-server.ts';
import type { TtrpcCall } from './ttrpc-server.ts';

/**
 * Unsent bytes above which, after a reply, nothing more is read until the peer has taken them. Our own
 * calls never stop the reading: two ends that both wait for the other to read would wait for ever.
 */
const REPLY_BACKLOG_MAX_BYTES = 1_048_576;

export interface NriConnection {
  /** The end from which we call the peer. */
  readonly client: Pick<TtrpcClient, 'call'>;
  /** Resolves, never rejects, with the reason once the socket is closed. */
  readonly closed: Promise<Error>;
  /** Closes the socket; `reason` is what `closed` and pending calls tell, unless it had ended already. */
  close(reason: Error): void;
}

/**
 * Runs both logical connections of an NRI socket: calls of the peer on `servedId` go to `handle`, our
 * own go out on `calledId`; frames of other connections are dropped, as the protocol asks.
 *
 * Whatever the peer sends, nothing is thrown: a stream that has lost its meaning closes the socket
 * and is told to `onMalformed`, as is a single call that cannot be understood.
 */
export function createNriConnection(options: {
  socket: Socket;
  servedId: number;
  calledId: number;
  handle: (call: TtrpcCall) => Promise<Uint8Array>;
  onMalformed: (reason: string) => void;
  /** Size of all frames of a message but its first; for a peer other than Go's reader. */
  laterFrameBytes?: number;
}): NriConnection {
  const { socket, servedId, calledId, onMalformed } = options;
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<Error>();
  let reason: Error | undefined;

  const send = (connectionId: number, message: Uint8Array): void => {
    if (socket.destroyed || !socket.writable) return;
    socket.write(encodeMuxFrames(connectionId, message, options.laterFrameBytes));
  };
  const client = createTtrpcClient((message) => send(calledId, message));
  const serve = createTtrpcServer({
    send: (message) => {
      send(servedId, message);
      if (socket.writableLength > REPLY_BACKLOG_MAX_BYTES) socket.pause();
    },
    handle: options.handle,
    onMalformed,
  });
  const decode = createMuxDecoder((connectionId, payload) => {
    if (connectionId === servedId) serve(payload);
    else if (connectionId === calledId) client.receive(payload);
  });

  const close = (why: Error): void => {
    reason ??= why;
    socket.destroy();
  };
  socket.on('data', (bytes: Buffer) => {
    if (socket.destroyed) return;
    try {
      decode(bytes);
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      onMalformed(failure.message);
      close(failure);
    }
  });
  socket.on('drain', () => socket.resume());
  socket.on('error', (error) => (reason ??= error));
  // Without this, a peer that stopped reading before it hung up would keep the socket open for ever.
  socket.on('end', () => close(new Error('the peer closed the NRI connection')));
  socket.on('close', () => {
    reason ??= new Error('the NRI connection was closed');
    client.fail(reason);
    resolveClosed(reason);
  });
  return { client, closed, close };
}
