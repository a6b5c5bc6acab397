import { constants } from 'node:crypto';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import type { KeyPair } from '@runtime-enforcer/certs/key-pair';
import { clientIdentity, type ClientIdentity, type ClientNames } from './client-identity.ts';
import { createHandshakeAdmission, HANDSHAKE_LIMITS, type HandshakeLimits } from './connection-limits.ts';
import { createRefusalLog, type RpcLog } from './refusal-log.ts';

const HANDSHAKE_MS = 5_000;
/** Connections that the kernel keeps until we accept them. */
const BACKLOG = 2_048;
/** Open connections of one client name; of more, the oldest is closed, which a peer that is gone may have left. */
const MAX_CONNECTIONS_PER_CLIENT = 8;
/** The same for all who may call nothing: they are only let in to be told so. */
const MAX_STRANGERS = 4;
const STRANGER_MS = 5_000;

export interface TlsListenerOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly certificates: Pick<CertificateStore, 'current' | 'onChange'>;
  readonly clients: ClientNames;
  /** Gets each connection whose client has shown a certificate of the authority. */
  readonly onConnection: (socket: TLSSocket) => void;
  readonly log: RpcLog;
  readonly limits?: HandshakeLimits | undefined;
  readonly handshakeMs?: number | undefined;
}

export interface ListenerCounters {
  /** Connections with a completed handshake. */
  accepted: number;
  /** No certificate, one of another authority, an ended one, no TLS 1.3, or nothing at all. */
  handshakesFailed: number;
  /** Too many connections, or too often. */
  connectionsRefused: number;
}

/** Accepts TLS 1.3 connections of clients whose certificate is of our authority. */
export interface TlsListener {
  /** @returns the port. Rejects when it cannot be bound. */
  start(): Promise<number>;
  /** Closes the port and every connection. */
  stop(): Promise<void>;
  /** @param peer `address:port` */
  close(peer: string): void;
  readonly counters: Readonly<ListenerCounters>;
}

interface Connection {
  readonly socket: TLSSocket;
  readonly name: string;
}

/** See {@link TlsListener}. Certificates are replaced as the store reads new ones. */
export function createTlsListener(options: TlsListenerOptions): TlsListener {
  const { certificates, clients, onConnection, limits = HANDSHAKE_LIMITS } = options;
  const admission = createHandshakeAdmission<string>(limits);
  const pending = new Map<string, Socket>();
  const connections = new Map<string, Connection>();
  const counters: ListenerCounters = { accepted: 0, handshakesFailed: 0, connectionsRefused: 0 };
  const refusals = createRefusalLog(options.log);
  let stopFollowing = (): void => undefined;
  let tls: ReturnType<typeof createTlsServer> | undefined;
  const tcp = createServer({ noDelay: true }, accept);

  function accept(raw: Socket): void {
    const peer = peerOf(raw);
    const { remoteAddress: address } = raw;
    raw.on('error', () => raw.destroy());
    if (peer === undefined || address === undefined || tls === undefined) return void raw.destroy();
    const { admitted, evicted } = admission.begin(peer, address, performance.now());
    if (!admitted) {
      counters.connectionsRefused++;
      refusals.refused({ address }, 'connection refused: the address opens too many');
      return void raw.destroy();
    }
    pending.set(peer, raw);
    raw.once('close', () => settle(peer));
    if (evicted !== undefined) {
      counters.connectionsRefused++;
      pending.get(evicted)?.destroy();
    }
    tls.emit('connection', raw);
  }

  function settle(peer: string): void {
    admission.end(peer);
    pending.delete(peer);
  }

  function secured(socket: TLSSocket): void {
    const peer = peerOf(socket);
    if (peer !== undefined) settle(peer);
    socket.on('error', () => socket.destroy());
    const certificate = socket.getPeerX509Certificate();
    if (peer === undefined || certificate === undefined || !socket.authorized) return void socket.destroy();
    counters.accepted++;
    const client = clientIdentity(certificate, clients);
    makeRoom(client);
    connections.set(peer, { socket, name: client.role === undefined ? '' : client.name });
    socket.once('close', () => connections.delete(peer));
    if (client.role === undefined) {
      refusals.refused(
        { address: socket.remoteAddress, names: client.name },
        `client refused: expected one of the DNS names ${[...clients.keys()].join(', ')} in its certificate`,
      );
      const timer = setTimeout(() => socket.destroy(), STRANGER_MS);
      socket.once('close', () => clearTimeout(timer));
    }
    onConnection(socket);
  }

  function makeRoom({ name, role }: ClientIdentity): void {
    const key = role === undefined ? '' : name;
    const max = role === undefined ? MAX_STRANGERS : MAX_CONNECTIONS_PER_CLIENT;
    const own = Array.from(connections.values()).filter((connection) => connection.name === key);
    for (const { socket } of own.slice(0, Math.max(0, own.length - max + 1))) {
      counters.connectionsRefused++;
      socket.destroy();
    }
  }

  function replacePair(pair: KeyPair, before: KeyPair): void {
    try {
      tls?.setSecureContext(secureContext(pair));
    } catch (error) {
      options.log.error({ error: String(error) }, 'new certificate refused: the one before stays in use');
      return;
    }
    options.log.info({ fingerprint: pair.fingerprint, notAfter: pair.notAfter }, 'certificate replaced');
    // Whoever is connected has been checked against authorities that may not be trusted any more.
    if (pair.authorities !== before.authorities)
      for (const { socket } of connections.values()) socket.destroy();
  }

  return {
    counters,
    async start() {
      let current = certificates.current();
      tls = createTlsServer({
        ...secureContext(current),
        ALPNProtocols: ['h2'],
        requestCert: true,
        rejectUnauthorized: true,
        handshakeTimeout: options.handshakeMs ?? HANDSHAKE_MS,
      });
      tls.on('secureConnection', secured);
      tls.on('tlsClientError', (error: Error & { code?: string }, socket) => {
        counters.handshakesFailed++;
        // A probe of the port connects and goes.
        if (error.code !== 'ECONNRESET')
          refusals.refused({ address: socket.remoteAddress, error: error.message }, 'TLS handshake failed');
        socket.destroy();
      });
      stopFollowing = certificates.onChange((pair) => {
        replacePair(pair, current);
        current = pair;
      });
      await new Promise<void>((resolve, reject) => {
        tcp.once('error', (error) => {
          stopFollowing();
          reject(error);
        });
        tcp.listen({ port: options.port, host: options.host, backlog: BACKLOG }, () => {
          tcp.removeAllListeners('error');
          tcp.on('error', (error) => options.log.error({ error: error.message }, 'gRPC port failed'));
          resolve();
        });
      });
      return (tcp.address() as AddressInfo).port;
    },
    async stop() {
      stopFollowing();
      const closed = new Promise<void>((resolve) => tcp.close(() => resolve()));
      for (const socket of pending.values()) socket.destroy();
      for (const { socket } of connections.values()) socket.destroy();
      await closed;
      refusals.stop();
    },
    close: (peer) => connections.get(peer)?.socket.destroy(),
  };
}

function secureContext(pair: KeyPair) {
  // Node takes what is left out here from its defaults at each replacement too.
  return {
    cert: pair.certificate,
    key: pair.key,
    ca: pair.authorities,
    minVersion: 'TLSv1.3',
    // A resumed session would not have its certificate checked again.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const;
}

function peerOf({ remoteAddress, remotePort }: Socket): string | undefined {
  return remoteAddress === undefined || remotePort === undefined
    ? undefined
    : `${remoteAddress}:${remotePort}`;
}
