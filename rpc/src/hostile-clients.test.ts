import { once } from 'node:events';
import { constants, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { CertifiedKey } from '@runtime-enforcer/certs/authority';
import type { KeyPair } from '@runtime-enforcer/certs/key-pair';
import { HANDSHAKE_LIMITS } from './connection-limits.ts';
import { observerMethods } from './observer-service.ts';
import { rawFrame, rawHeaders, rawHttp2, rawTls } from './raw-client-fixture.ts';
import { AGENT_NAME, startTestServer, testAuthority, testPair } from './rpc-fixture.ts';
import type { RpcLimits } from './rpc-server.ts';

/** The kernel lets a burst of connections come again after a second. */
const PATIENT = { timeout: 10_000 };
const UNLIMITED = { pending: 2_000, pendingPerAddress: 2_000, perSecond: 2_000, burst: 2_000 };

let authority: CertifiedKey;
let controller: KeyPair;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  authority = await testAuthority();
  controller = await testPair(authority, 'controller');
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function start(limits: Partial<RpcLimits> = {}) {
  const running = await startTestServer(authority, { limits });
  stops.push(running.stop);
  const isServing = async (): Promise<boolean> => {
    const client = running.client(controller);
    return await client.isServing().finally(() => client.close());
  };
  return { ...running, isServing };
}

function tcp(port: number, localAddress: string): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  stops.push(() => socket.destroy());
  return socket;
}

async function tls(port: number): Promise<TLSSocket> {
  const socket = await rawTls(port, controller);
  stops.push(() => socket.destroy());
  return socket;
}

async function http2(port: number): Promise<ClientHttp2Session> {
  const session = await rawHttp2(port, controller);
  stops.push(() => session.destroy());
  return session;
}

const HEADERS = rawHeaders(observerMethods.listPoliciesStatus.path);

/** The gRPC status that a request ends with. */
async function statusOf(session: ClientHttp2Session, body: Buffer | undefined, more = {}): Promise<string> {
  const stream = session.request({ ...HEADERS, ...more });
  stream.on('error', () => undefined);
  const status = new Promise<string>((resolve) => {
    const read = (headers: IncomingHttpHeaders): void => {
      const value = headers['grpc-status'];
      if (value !== undefined) resolve(String(value));
    };
    stream.on('response', read);
    stream.on('trailers', read);
    stream.on('close', () => resolve('none'));
  });
  stream.resume();
  if (body !== undefined) stream.end(body);
  return await status.finally(() => stream.close());
}

describe('strangers', () => {
  it('who never finish a handshake hold nobody up, and are sent away', async () => {
    const { port, isServing, server } = await start({ handshakeMs: 500 });
    const silent = [tcp(port, '127.0.0.2'), tcp(port, '127.0.0.2'), tcp(port, '127.0.0.3')];
    const closed = Promise.all(silent.map((socket) => once(socket, 'close')));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    await expect(isServing()).resolves.toBe(true);
    await closed;
    expect(server.counters.handshakesFailed).toBe(3);
  });

  it('who open a thousand connections from one address are refused most of them, and nobody else is', async () => {
    const { port, isServing, server, log } = await start();
    const many = Array.from({ length: 1_000 }, () => tcp(port, '127.0.0.2'));
    await vi.waitFor(() => expect(server.counters.connectionsRefused).toBeGreaterThan(900), PATIENT);
    await expect(isServing()).resolves.toBe(true);
    expect(many.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(
      HANDSHAKE_LIMITS.pendingPerAddress,
    );
    expect(log.lines.length).toBeLessThan(5);
  });

  it('who come from a thousand addresses take turns, and a client of ours still gets its own', async () => {
    const { port, isServing, server } = await start();
    const many = Array.from({ length: 1_000 }, (_, index) =>
      tcp(port, `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`),
    );
    await vi.waitFor(() => expect(server.counters.connectionsRefused).toBeGreaterThan(800), PATIENT);
    await expect(isServing()).resolves.toBe(true);
    await vi.waitFor(() =>
      expect(many.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(HANDSHAKE_LIMITS.pending),
    );
  });

  it('who send anything but TLS are cut off', async () => {
    const { port, isServing, server } = await start();
    for (const bytes of [
      'GET / HTTP/1.1\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      Buffer.alloc(65_536, 0x16),
    ]) {
      const socket = tcp(port, '127.0.0.2');
      socket.write(bytes);
      socket.resume();
      await once(socket, 'close');
    }
    expect(server.counters.handshakesFailed).toBe(3);
    await expect(isServing()).resolves.toBe(true);
  });

  it('who offer no more than TLS 1.2 are refused, also after a certificate was replaced', async () => {
    const { port, store } = await start();
    const attempt = async (): Promise<unknown> => {
      const socket = connectTls({
        ...{ port, host: '127.0.0.1', servername: AGENT_NAME, maxVersion: 'TLSv1.2' },
        ...{ cert: controller.certificate, key: controller.key, ca: controller.authorities },
      });
      const outcome = await Promise.race([
        once(socket, 'secureConnect').then(() => 'connected'),
        once(socket, 'error').then(([error]: Error[]) => error?.message),
      ]).catch((error: unknown) => String(error));
      socket.destroy();
      return outcome;
    };
    expect(await attempt()).toMatch(/alert protocol version/);
    store.replace(await testPair(authority, AGENT_NAME));
    expect(await attempt()).toMatch(/alert protocol version/);
  });
});

describe('a client with a certificate of ours', () => {
  it('that opens hundreds of connections loses the oldest, and the newest serves', async () => {
    const { port, server, isServing } = await start({ handshakes: UNLIMITED });
    const sockets: TLSSocket[] = [];
    for (let round = 0; round < 6; round++) {
      sockets.push(...(await Promise.all(Array.from({ length: 50 }, () => tls(port)))));
    }
    for (const socket of sockets) socket.resume();
    await expect(isServing()).resolves.toBe(true);
    await vi.waitFor(() => expect(sockets.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(8));
    expect(server.counters.accepted).toBe(301);
  }, 60_000);

  it('that sends garbage is cut off, and nobody else is', async () => {
    const { port, isServing, client } = await start();
    const other = client(controller);
    await other.isServing();
    for (const bytes of [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.alloc(65_536, 0xff)]),
      Buffer.alloc(100_000, 0x41),
    ]) {
      const socket = await tls(port);
      socket.write(bytes);
      socket.resume();
      await once(socket, 'close');
    }
    await expect(other.isServing()).resolves.toBe(true);
    await expect(isServing()).resolves.toBe(true);
  });

  it('that does not end its requests is told so, and has sixteen at a time', async () => {
    const { port, isServing } = await start({ requestMs: 300 });
    const session = await http2(port);
    await once(session, 'remoteSettings');
    expect(session.remoteSettings.maxConcurrentStreams).toBe(16);
    const statuses = await Promise.all(Array.from({ length: 16 }, () => statusOf(session, undefined)));
    expect(statuses).toEqual(Array(16).fill('4'));
    await expect(isServing()).resolves.toBe(true);
  });

  it.each([
    ['a request that is too long', rawFrame(Buffer.alloc(70_000)), {}, '8'],
    ['the promise of one', rawFrame(Buffer.alloc(0)).fill(0xff, 1, 5), {}, '8'],
    [
      'one that unpacks to too much',
      rawFrame(gzipSync(Buffer.alloc(50_000_000)), true),
      { 'grpc-encoding': 'gzip' },
      '8',
    ],
    ['one that is no message', rawFrame(Buffer.from([0x0a, 0xff, 0xff])), {}, '13'],
    ['half of one', rawFrame(Buffer.alloc(10)).subarray(0, 9), {}, '12'],
    ['a deadline that is none', rawFrame(Buffer.alloc(0)), { 'grpc-timeout': 'soon' }, '13'],
    ['a method that there is not', rawFrame(Buffer.alloc(0)), { ':path': '/x.Y/Z' }, '12'],
  ])('that sends %s is told so', async (_, body, headers, status) => {
    const { port, isServing } = await start({ requestMs: 1_000 });
    const session = await http2(port);
    expect(await statusOf(session, body, headers)).toBe(status);
    await expect(isServing()).resolves.toBe(true);
  });

  it('that opens and resets streams without end, or pings without end, holds nobody up', async () => {
    const { port, isServing } = await start();
    const resetting = await http2(port);
    const pinging = await http2(port);
    for (let round = 0; round < 20; round++) {
      for (let count = 0; count < 100; count++) {
        if (!resetting.destroyed) {
          const stream = resetting.request(HEADERS);
          stream.on('error', () => undefined);
          stream.close(constants.NGHTTP2_CANCEL);
        }
        if (!pinging.destroyed) pinging.ping(() => undefined);
      }
      await sleep(1);
    }
    await expect(isServing()).resolves.toBe(true);
  });
});
