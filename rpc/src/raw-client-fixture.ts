import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { KeyPair } from '@runtime-enforcer/certs/key-pair';
import { AGENT_NAME } from './rpc-fixture.ts';

/** A connection with a certificate, and nothing that behaves as a gRPC client does. For tests. */
export async function rawTls(port: number, pair: KeyPair): Promise<TLSSocket> {
  const socket = connectTls({
    ...{ port, host: '127.0.0.1', servername: AGENT_NAME, ALPNProtocols: ['h2'] },
    ...{ cert: pair.certificate, key: pair.key, ca: pair.authorities },
  });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

export async function rawHttp2(port: number, pair: KeyPair): Promise<ClientHttp2Session> {
  const socket = await rawTls(port, pair);
  const session = connectHttp2(`https://${AGENT_NAME}`, { createConnection: () => socket });
  session.on('error', () => undefined);
  return session;
}

export function rawHeaders(path: string): Record<string, string> {
  return { ':method': 'POST', ':path': path, 'content-type': 'application/grpc+proto', te: 'trailers' };
}

/** A message as gRPC frames it. */
export function rawFrame(message: Uint8Array, compressed = false): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(compressed ? 1 : 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
