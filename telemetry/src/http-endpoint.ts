import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';

const MAX_CONNECTIONS = 32;
const REQUEST_TIMEOUT_MS = 10_000;
const MIN_VERSION = 'TLSv1.2';

/** Where to listen; port 0 takes a free one. */
export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

/** An answer as text. */
export interface TextAnswer {
  readonly status: number;
  readonly contentType?: string;
  readonly text: string;
}

/** Whether somebody may read: `unknown` for who did not say who it is. */
export type Access = 'granted' | 'unknown' | 'forbidden';

const REFUSED: Readonly<Record<Exclude<Access, 'granted'>, TextAnswer>> = {
  unknown: { status: 401, text: 'a bearer token of the cluster is needed\n' },
  forbidden: { status: 403, text: 'this may not be read with that token\n' },
};

/** A small server of texts. */
export interface HttpEndpoint {
  /** Resolves with the port. Rejects with the error of the socket. */
  start(): Promise<number>;
  /** Ends it and every connection. */
  stop(): Promise<void>;
}

/**
 * Answers GET and HEAD by path, for few clients at a time that ask seldom. With certificates it speaks TLS, and takes
 * a new pair without a restart; what cannot be taken leaves the one before in use.
 *
 * @param options.answer by path; undefined where there is nothing, a rejection is answered with 500
 * @param options.nothing told where nothing is
 */
export function createHttpEndpoint(options: {
  address: EndpointAddress;
  answer: (path: string) => Promise<TextAnswer | undefined> | TextAnswer | undefined;
  nothing: string;
  /** Who may read, by the `Authorization` header; everybody when left out. A rejection lets nobody in. */
  authorize?: (authorization: string | undefined) => Promise<Access>;
  certificates?: CertificateStore;
  /** Told of a pair that could not be taken. */
  onRefused?: (error: unknown) => void;
}): HttpEndpoint {
  const { address, answer, nothing, authorize, certificates, onRefused } = options;
  let server: Server | HttpsServer | undefined;
  let endChanges: (() => void) | undefined;

  const answerTo = async ({ method, url, headers }: IncomingMessage): Promise<TextAnswer> => {
    try {
      const access = (await authorize?.(headers.authorization)) ?? 'granted';
      if (access !== 'granted') return REFUSED[access];
      const isRead = method === 'GET' || method === 'HEAD';
      const found = isRead ? await answer(url?.split('?', 1)[0] ?? '') : undefined;
      return found ?? { status: 404, text: nothing };
    } catch {
      return { status: 500, text: 'this could not be read\n' };
    }
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    void answerTo(request).then(({ status, text, contentType = 'text/plain; charset=utf-8' }) => {
      response.writeHead(status, { 'content-type': contentType }).end(text);
    });
  };
  const create = (): Server | HttpsServer => {
    const limits = { requestTimeout: REQUEST_TIMEOUT_MS };
    if (certificates === undefined) return createHttpServer(limits, handle);
    const context = (): { cert: string; key: string; minVersion: typeof MIN_VERSION } => {
      const { certificate, key } = certificates.current();
      return { cert: certificate, key, minVersion: MIN_VERSION };
    };
    const secure = createHttpsServer(
      { ...limits, ...context(), handshakeTimeout: REQUEST_TIMEOUT_MS },
      handle,
    );
    endChanges = certificates.onChange(() => {
      try {
        secure.setSecureContext(context());
        secure.closeIdleConnections();
      } catch (error) {
        onRefused?.(error);
      }
    });
    return secure;
  };

  return {
    async start() {
      const created = create();
      server = created;
      created.maxConnections = MAX_CONNECTIONS;
      const listening = Promise.withResolvers<undefined>();
      created.once('error', listening.reject);
      created.listen(address.port, address.host, () => listening.resolve(undefined));
      await listening.promise;
      created.on('error', () => undefined);
      const bound = created.address();
      return typeof bound === 'object' && bound !== null ? bound.port : address.port;
    },
    async stop() {
      endChanges?.();
      if (server?.listening !== true) return;
      const closed = Promise.withResolvers<undefined>();
      server.close(() => closed.resolve(undefined));
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
