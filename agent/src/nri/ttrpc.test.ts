import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { nriCodecs } from './messages.ts';
import { createTtrpcClient } from './ttrpc-client.ts';
import { createTtrpcDecoder, encodeTtrpcFrame, TTRPC_MAX_DATA_BYTES, TTRPC_REQUEST } from './ttrpc-frame.ts';
import { createTtrpcServer, MAX_CALLS_IN_PROGRESS } from './ttrpc-server.ts';
import type { TtrpcCall } from './ttrpc-server.ts';
import { STATUS_MESSAGE_MAX_BYTES, TtrpcCode, TtrpcStatusError } from './ttrpc-status.ts';

const FUZZ = { seed: 1_722_003, numRuns: 500 };

/** A client and a server that hand their messages to each other. */
function pair(handle: (call: TtrpcCall) => Promise<Uint8Array>) {
  const malformed: string[] = [];
  const client = createTtrpcClient((message) => serve(message));
  const serve = createTtrpcServer({
    send: (message) => client.receive(message),
    handle,
    onMalformed: (reason) => malformed.push(reason),
  });
  return { client, malformed };
}

/** A server whose replies are collected as `[stream id, status code, status text or payload]`. */
function listen(handle: (call: TtrpcCall) => Promise<Uint8Array>) {
  const replies: [number, number, string][] = [];
  const malformed: string[] = [];
  const collect = createTtrpcDecoder(({ streamId, data }) => {
    const { status, payload } = nriCodecs().response.decode(data ?? new Uint8Array());
    replies.push([streamId, status?.code ?? 0, status?.message ?? Buffer.from(payload).toString()]);
  });
  const receive = createTtrpcServer({
    send: collect,
    handle,
    onMalformed: (reason) => malformed.push(reason),
  });
  return { receive, replies, malformed };
}

function request(streamId: number, method = 'M'): Uint8Array {
  const data = nriCodecs().request.encode({
    service: 's',
    method,
    payload: Buffer.from('in'),
    timeoutNano: 2e9,
  });
  return encodeTtrpcFrame(streamId, TTRPC_REQUEST, data);
}

const reply = (text: string) => () => Promise.resolve(Buffer.from(text));
const settle = () => new Promise((resolve) => setImmediate(resolve));

afterEach(() => void vi.useRealTimers());

describe('ttrpc calls', () => {
  it('carry service, method, payload and what is left of the deadline', async () => {
    const calls: TtrpcCall[] = [];
    const { client } = pair((call) => {
      calls.push(call);
      return Promise.resolve(Buffer.from('out'));
    });
    expect(Buffer.from(await client.call('svc', 'Do', Buffer.from('in'), 1_500)).toString()).toBe('out');
    expect(calls).toEqual([{ service: 'svc', method: 'Do', payload: Buffer.from('in'), timeoutMs: 1_500 }]);
  });

  it('may be answered in any order', async () => {
    const gates = new Map<string, () => void>();
    const { client } = pair(async ({ method }) => {
      await new Promise<void>((resolve) => gates.set(method, resolve));
      return Buffer.from(method);
    });
    const first = client.call('s', 'first', new Uint8Array(), 1_000);
    const second = client.call('s', 'second', new Uint8Array(), 1_000);
    gates.get('second')?.();
    expect(String(Buffer.from(await second))).toBe('second');
    gates.get('first')?.();
    expect(String(Buffer.from(await first))).toBe('first');
  });

  it('bring a handler error back with its code and text', async () => {
    const { client } = pair(({ method }) =>
      Promise.reject(
        method === 'Coded'
          ? new TtrpcStatusError(TtrpcCode.unimplemented, 'no such method')
          : new Error('it broke'),
      ),
    );
    await expect(client.call('s', 'Coded', new Uint8Array(), 1_000)).rejects.toMatchObject({
      code: 12,
      message: 'no such method',
    });
    await expect(client.call('s', 'Plain', new Uint8Array(), 1_000)).rejects.toMatchObject({
      code: 2,
      message: 'it broke',
    });
  });

  it('bring back an error text that is bounded and valid, whatever the error holds', async () => {
    const texts = ['é'.repeat(5_000), `\ud800 broken`, '😀'.repeat(2_000), ''];
    for (const text of texts) {
      const { client } = pair(() => Promise.reject(new Error(text)));
      const error: unknown = await client.call('s', 'm', new Uint8Array(), 1_000).catch((e: unknown) => e);
      const message = error instanceof Error ? error.message : '';
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(STATUS_MESSAGE_MAX_BYTES);
      expect(message.isWellFormed()).toBe(true);
      expect(message).toBe(text.toWellFormed().slice(0, message.length));
      expect(message.length > 0).toBe(text.length > 0);
    }
  });

  it('end with deadlineExceeded when no answer comes', async () => {
    vi.useFakeTimers();
    const client = createTtrpcClient(() => undefined);
    const call = expect(client.call('s', 'Slow', new Uint8Array(), 50)).rejects.toMatchObject({
      code: TtrpcCode.deadlineExceeded,
      message: 'no reply to Slow within 50 ms',
    });
    await vi.advanceTimersByTimeAsync(50);
    await call;
  });

  it('reject when the connection ends, and at once afterwards', async () => {
    const client = createTtrpcClient(() => undefined);
    const pending = expect(client.call('s', 'm', new Uint8Array(), 1_000)).rejects.toThrow('gone');
    client.fail(new Error('gone'));
    await pending;
    await expect(client.call('s', 'm', new Uint8Array(), 1_000)).rejects.toThrow('gone');
  });

  it('that are too long are refused on either way with resourceExhausted', async () => {
    const { client } = pair(() => Promise.resolve(new Uint8Array(TTRPC_MAX_DATA_BYTES)));
    const refused = { code: TtrpcCode.resourceExhausted };
    await expect(client.call('s', 'm', new Uint8Array(TTRPC_MAX_DATA_BYTES), 1_000)).rejects.toMatchObject(
      refused,
    );
    await expect(client.call('s', 'm', new Uint8Array(), 1_000)).rejects.toMatchObject(refused);
  });
});

describe('a ttrpc server', () => {
  it('answers even, reused and oversized requests with an error and goes on', async () => {
    const { receive, replies, malformed } = listen(reply('ok'));
    const oversized = Buffer.alloc(10 + TTRPC_MAX_DATA_BYTES + 1);
    oversized.writeUInt32BE(TTRPC_MAX_DATA_BYTES + 1, 0);
    oversized.writeUInt32BE(7, 4);
    oversized.writeUInt8(TTRPC_REQUEST, 8);
    for (const bytes of [request(2), request(5), request(5), request(3), oversized, request(9)])
      receive(bytes);
    await settle();
    expect(replies.sort((a, b) => a[0] - b[0])).toEqual([
      [2, 3, 'stream id 2 of a request must be odd'],
      [3, 3, 'stream id 3 must be greater than the last one, 5'],
      [5, 3, 'stream id 5 must be greater than the last one, 5'],
      [5, 0, 'ok'],
      [7, 8, 'message length 4194305 exceeds the maximum of 4194304 bytes'],
      [9, 0, 'ok'],
    ]);
    expect(malformed).toHaveLength(4);
  });

  it('ignores frames that are no requests', async () => {
    const { receive, replies } = listen(reply('ok'));
    for (const type of [0, 2, 3, 4, 255]) receive(encodeTtrpcFrame(1, type, Buffer.from('x')));
    receive(request(1));
    await settle();
    expect(replies).toEqual([[1, 0, 'ok']]);
  });

  it('refuses calls beyond its limit while those before are in progress', async () => {
    const release = Promise.withResolvers<Uint8Array>();
    const { receive, replies } = listen(() => release.promise);
    for (let n = 0; n <= MAX_CALLS_IN_PROGRESS; n += 1) receive(request(2 * n + 1));
    await settle();
    expect(replies.map(([, code]) => code)).toEqual([TtrpcCode.resourceExhausted]);
    release.resolve(Buffer.from('ok'));
    await settle();
    expect(replies).toHaveLength(MAX_CALLS_IN_PROGRESS + 1);
    receive(request(99_999));
    await settle();
    expect(replies.at(-1)).toEqual([99_999, 0, 'ok']);
  });

  it('answers every request frame exactly once, whatever its data', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 20 }), async (datas) => {
        const { receive, replies } = listen(reply('ok'));
        datas.forEach((data, n) => receive(encodeTtrpcFrame(2 * n + 1, TTRPC_REQUEST, data)));
        await settle();
        expect(replies.map(([id]) => id).sort((a, b) => a - b)).toEqual(datas.map((_, n) => 2 * n + 1));
      }),
      FUZZ,
    );
  });

  it('throws at no byte stream', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), async (pieces) => {
        const { receive } = listen(reply('ok'));
        const client = createTtrpcClient(() => undefined);
        const call = client.call('s', 'm', new Uint8Array(), 60_000).catch(() => undefined);
        for (const piece of pieces) {
          receive(piece);
          client.receive(piece);
        }
        client.fail(new Error('end'));
        await call;
      }),
      FUZZ,
    );
  });
});
