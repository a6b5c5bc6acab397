import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createNriConnection } from './connection.ts';
import type { NriConnection } from './connection.ts';
import { nriCodecs } from './messages.ts';
import { encodeMuxFrames, MUX_MAX_PAYLOAD_BYTES, NriProtocolError } from './mux.ts';
import { encodeTtrpcFrame, TTRPC_MAX_DATA_BYTES, TTRPC_REQUEST } from './ttrpc-frame.ts';
import type { TtrpcCall } from './ttrpc-server.ts';

const FUZZ = { seed: 1_722_006, numRuns: 150 };

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nri-connection-'));
});
afterAll(() => rm(directory, { recursive: true }));

const opened: Socket[] = [];
afterEach(() => opened.splice(0).forEach((socket) => socket.destroy()));

/** Both ends of a new unix socket connection. */
async function socketPair(): Promise<[Socket, Socket]> {
  const path = join(directory, 's');
  const { promise, resolve } = Promise.withResolvers<[Socket, Socket]>();
  const server = createServer({ pauseOnConnect: false }, (accepted) => {
    server.close();
    accepted.on('error', () => undefined);
    opened.push(accepted, dialled);
    resolve([accepted, dialled]);
  });
  server.listen(path);
  const dialled = createConnection(path);
  return promise;
}

const echo = ({ payload }: TtrpcCall) => Promise.resolve(payload);

/** A connection that serves id 1, and the bare socket of its peer. */
async function connectionAndPeer(handle = echo) {
  const [socket, peer] = await socketPair();
  const malformed: string[] = [];
  const connection = createNriConnection({
    socket,
    servedId: 1,
    calledId: 2,
    handle,
    onMalformed: (reason) => malformed.push(reason),
  });
  return { socket, peer, connection, malformed };
}

/** A connection that calls id 1 over its peer's socket. */
function callerOver(socket: Socket, laterFrameBytes: number): NriConnection {
  return createNriConnection({
    socket,
    servedId: 2,
    calledId: 1,
    handle: echo,
    onMalformed: () => undefined,
    laterFrameBytes,
  });
}

function request(streamId: number, payload: Uint8Array): Uint8Array {
  const data = nriCodecs().request.encode({ service: 's', method: 'm', payload, timeoutNano: 0 });
  return encodeTtrpcFrame(streamId, TTRPC_REQUEST, data);
}

async function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
}

describe('an NRI connection', () => {
  it('carries calls both ways, of any size up to the limit', async () => {
    const { peer, connection } = await connectionAndPeer();
    const remote = callerOver(peer, MUX_MAX_PAYLOAD_BYTES);
    for (const size of [0, 1, 4_070, 4_096, 28_000, TTRPC_MAX_DATA_BYTES - 100]) {
      const payload = new Uint8Array(size).fill(7);
      const replies = [
        await remote.client.call('s', 'm', payload, 10_000),
        await connection.client.call('s', 'm', payload, 10_000),
      ];
      for (const reply of replies) expect(Buffer.compare(reply, payload)).toBe(0);
    }
  });

  it('is cut at every byte of a call and still answers it once', async () => {
    const bytes = encodeMuxFrames(1, request(1, Buffer.from('hello')));
    for (let at = 1; at < bytes.length; at += 1) {
      const { peer, socket } = await connectionAndPeer();
      const answered = new Promise<Buffer>((resolve) => peer.once('data', resolve));
      await write(peer, bytes.subarray(0, at));
      await new Promise((resolve) => setImmediate(resolve));
      peer.write(bytes.subarray(at));
      expect((await answered).includes('hello')).toBe(true);
      socket.destroy();
    }
  });

  it('is closed at every byte of a call and ends without an error outside', async () => {
    const bytes = encodeMuxFrames(1, request(1, Buffer.from('hello')));
    for (let at = 0; at <= bytes.length; at += 1) {
      const { peer, connection } = await connectionAndPeer();
      peer.end(bytes.subarray(0, at));
      expect((await connection.closed).message).toBe('the peer closed the NRI connection');
    }
  });

  it('ends with a clear error when the stream has lost its meaning', async () => {
    const { peer, connection, malformed } = await connectionAndPeer();
    peer.write('GET / HTTP/1.1\r\n\r\n');
    const reason = await connection.closed;
    expect(reason).toBeInstanceOf(NriProtocolError);
    expect(malformed).toEqual([reason.message]);
    expect(reason.message).toBe(
      'NRI frame for connection 1195725856 announces 790644820 bytes, expected at most 4194314',
    );
  });

  it('drops frames of other logical connections', async () => {
    const { peer } = await connectionAndPeer();
    const remote = callerOver(peer, MUX_MAX_PAYLOAD_BYTES);
    for (const id of [0, 3, 0xffff_ffff]) peer.write(encodeMuxFrames(id, request(1, new Uint8Array(5_000))));
    await expect(remote.client.call('s', 'm', Buffer.from('x'), 5_000)).resolves.toHaveLength(1);
  });

  it('stops reading from a peer that takes no answers', async () => {
    const { peer, socket } = await connectionAndPeer();
    peer.pause();
    const bytes = new Uint8Array(60_000);
    for (let n = 0; n < 200 && socket.bytesRead < 11_000_000; n += 1) {
      peer.write(encodeMuxFrames(1, request(2 * n + 1, bytes), MUX_MAX_PAYLOAD_BYTES));
    }
    await expect.poll(() => socket.isPaused(), { timeout: 5_000 }).toBe(true);
    expect(socket.writableLength).toBeLessThan(4_194_304);
    const total = { bytes: 0 };
    peer.on('data', (data: Buffer) => (total.bytes += data.length));
    peer.resume();
    await expect.poll(() => total.bytes, { timeout: 10_000 }).toBeGreaterThan(200 * 60_000);
  });

  it('pending calls fail with the reason of the end', async () => {
    const { connection } = await connectionAndPeer();
    const call = expect(connection.client.call('s', 'm', new Uint8Array(), 5_000)).rejects.toThrow(
      'on purpose',
    );
    connection.close(new Error('on purpose'));
    await call;
    expect((await connection.closed).message).toBe('on purpose');
  });

  it('survives or cleanly ends at any bytes', async () => {
    const frame = fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc
        .tuple(fc.nat(3), fc.nat(9), fc.nat(4), fc.uint8Array({ maxLength: 50 }))
        .map(([id, streamId, type, data]) => encodeMuxFrames(id, encodeTtrpcFrame(streamId, type, data))),
      fc.tuple(fc.nat(3), fc.uint8Array({ maxLength: 50 })).map(([id, data]) => encodeMuxFrames(id, data)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), async (frames) => {
        const { peer, connection } = await connectionAndPeer();
        peer.resume();
        peer.end(Buffer.concat(frames));
        expect(await connection.closed).toBeInstanceOf(Error);
      }),
      FUZZ,
    );
  });
});
