import { constants, type X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { connect, createSecureContext, type SecureContext } from 'node:tls';
import { ChannelCredentials, CallCredentials, type experimental } from '@grpc/grpc-js';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import type { KeyPair } from '@runtime-enforcer/certs/key-pair';

/** From the open connection to the end of the handshake. */
const HANDSHAKE_MS = 10_000;

export interface AgentCredentialsOptions {
  readonly certificates: Pick<CertificateStore, 'current'>;
  /** The one DNS name that the agent's certificate must have. */
  readonly serverName: string;
  readonly handshakeMs?: number | undefined;
}

/**
 * Mutual TLS 1.3 for a channel to one agent. Each connection is made with the pair that the store has at that moment.
 * Our own, because the credentials that come with gRPC neither give up a handshake nor take a TLS version together
 * with certificates that change.
 */
export class AgentCredentials extends ChannelCredentials {
  readonly #options: AgentCredentialsOptions;

  constructor(options: AgentCredentialsOptions) {
    super();
    this.#options = options;
  }

  override _isSecure(): boolean {
    return true;
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(): experimental.SecureConnector {
    const options = this.#options;
    return {
      connect: (socket) => secure(socket, options),
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => CallCredentials.createEmpty(),
      destroy: () => undefined,
    };
  }
}

/** Many connections show one pair: what it is parsed into is theirs together. */
const contexts = new WeakMap<KeyPair, SecureContext>();

function secureContextOf(pair: KeyPair): SecureContext {
  const known = contexts.get(pair);
  if (known !== undefined) return known;
  const context = createSecureContext({
    cert: pair.certificate,
    key: pair.key,
    ca: pair.authorities,
    minVersion: 'TLSv1.3',
    secureOptions: constants.SSL_OP_NO_TICKET,
  });
  contexts.set(pair, context);
  return context;
}

async function secure(
  socket: Socket,
  { certificates, serverName, handshakeMs = HANDSHAKE_MS }: AgentCredentialsOptions,
): Promise<experimental.SecureConnectResult> {
  const secureContext = secureContextOf(certificates.current());
  return await new Promise((resolve, reject) => {
    const tls = connect({
      socket,
      secureContext,
      servername: serverName,
      ALPNProtocols: ['h2'],
      // What stands in for the usual check takes no wildcard, and no name from the subject.
      checkServerIdentity: () => undefined,
    });
    const timer = setTimeout(() => {
      fail(new Error(`no TLS handshake within ${handshakeMs} ms`));
    }, handshakeMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
      tls.destroy();
      socket.destroy();
    };
    tls.once('error', fail);
    tls.once('close', () => fail(new Error('the agent closed the connection during the TLS handshake')));
    tls.once('secureConnect', () => {
      const wrong = identityError(tls.getPeerX509Certificate(), serverName);
      if (wrong !== undefined) {
        fail(wrong);
        return;
      }
      if (tls.alpnProtocol !== 'h2') {
        fail(new Error('the agent does not speak HTTP/2'));
        return;
      }
      clearTimeout(timer);
      tls.off('error', fail);
      resolve({ socket: tls, secure: true });
    });
  });
}

function identityError(certificate: X509Certificate | undefined, serverName: string): Error | undefined {
  if (certificate?.checkHost(serverName, { subject: 'never', wildcards: false }) !== undefined)
    return undefined;
  const names = certificate?.subjectAltName ?? 'no name';
  return new Error(`the agent's certificate is for ${names}; expected DNS:${serverName}`);
}
