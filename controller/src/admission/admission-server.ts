import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { CertificateStore } from '@runtime-enforcer/certs/certificate-store';
import type { Logger } from '@runtime-enforcer/telemetry/logger';
import { type Admit, parseReview, reviewAnswer, ReviewError } from './admission-review.ts';

/** Two objects of etcd's largest size, and what is around them. */
const MAX_BODY_BYTES = 3 * 1024 * 1024;
/** Requests beyond these are refused at once, for the failure policy to decide. */
const MAX_CONCURRENT = 128;
/** Answers come this long before the API server stops waiting. */
const ANSWER_MARGIN_MS = 500;
/** What the API server waits at most. */
const MAX_BUDGET_MS = 30_000;
const DEFAULT_BUDGET_MS = 10_000;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_CONNECTIONS = 512;

export interface AdmissionServerOptions {
  /** By path. */
  readonly routes: ReadonlyMap<string, Admit>;
  readonly certificates: CertificateStore;
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly log: Logger;
  readonly observe?: (route: string, result: AdmissionResult, durationMs: number) => void;
}

/** `error`: no verdict, so that the failure policy of the webhook decides. */
export type AdmissionResult = 'allowed' | 'warned' | 'denied' | 'error';

/** Answers AdmissionReviews over TLS 1.3, with the newest certificate of the store. */
export interface AdmissionServer {
  /** @returns the port that it listens on @throws the listening error */
  start(): Promise<number>;
  /** Takes no new request, and waits for those under way. */
  stop(): Promise<void>;
}

/** Something is wrong with a request before it is a review. */
class HttpError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** See {@link AdmissionServer}. */
export function admissionServer(options: AdmissionServerOptions): AdmissionServer {
  const { routes, certificates, log, observe } = options;
  let underWay = 0;

  async function answer(message: IncomingMessage): Promise<unknown> {
    const url = new URL(message.url ?? '/', 'https://webhook');
    const admit = routes.get(url.pathname);
    if (admit === undefined) throw new HttpError(404, 'no webhook is served at this path');
    if (message.method !== 'POST') throw new HttpError(405, 'an AdmissionReview is sent by POST');
    if (!/^application\/json\b/.test(message.headers['content-type'] ?? '')) {
      throw new HttpError(415, 'an AdmissionReview is sent as application/json');
    }
    if (underWay > MAX_CONCURRENT) throw new HttpError(503, 'too many reviews at once');
    const start = performance.now();
    const signal = AbortSignal.timeout(budgetMs(url.searchParams.get('timeout')));
    let result: AdmissionResult = 'error';
    try {
      const request = parseReview(await readBody(message, signal));
      const verdict = await admit(request, signal);
      const isWarned = (verdict.warnings ?? []).length > 0;
      result = !verdict.allowed ? 'denied' : isWarned ? 'warned' : 'allowed';
      if (!verdict.allowed) {
        const { operation, kind, namespace, name, user } = request;
        const about = { operation, kind, namespace, name, user: user.username };
        log.info({ ...about, refusal: verdict.refusal.message }, 'request refused');
      }
      return reviewAnswer(request.uid, verdict);
    } finally {
      observe?.(url.pathname, result, performance.now() - start);
    }
  }

  function handle(message: IncomingMessage, response: ServerResponse): void {
    underWay++;
    answer(message)
      .then(
        (review) => send(response, 200, review),
        (error: unknown) => {
          if (!isRequestFault(error)) log.warn({ err: error, path: message.url }, 'review not answered');
          const status = error instanceof HttpError ? error.status : error instanceof ReviewError ? 400 : 500;
          // What is left of the body is not read.
          if (!message.complete) response.setHeader('connection', 'close');
          send(response, status, { message: error instanceof Error ? error.message : String(error) });
        },
      )
      .finally(() => underWay--)
      .catch((err: unknown) => log.warn({ err }, 'answer not sent'));
  }

  const server = createServer({ minVersion: 'TLSv1.3', requestTimeout: REQUEST_TIMEOUT_MS }, handle);
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.maxConnections = MAX_CONNECTIONS;
  // Scanners and probes that never speak TLS are no news.
  server.on('tlsClientError', (_, socket) => socket.destroy());
  server.on('clientError', (_, socket) => socket.destroy());
  let unfollow: (() => void) | undefined;

  function useCertificate(): void {
    const { certificate, key } = certificates.current();
    server.setSecureContext({ cert: certificate, key, minVersion: 'TLSv1.3' });
    // The API server keeps its connections for long: those that carry nothing are made anew.
    server.closeIdleConnections();
  }

  return {
    async start() {
      useCertificate();
      unfollow = certificates.onChange(useCertificate);
      server.listen(options.port, options.host);
      await once(server, 'listening');
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : 0;
    },
    async stop() {
      unfollow?.();
      if (!server.listening) return;
      server.close();
      server.closeIdleConnections();
      await once(server, 'close');
    },
  };
}

function isRequestFault(error: unknown): boolean {
  return error instanceof HttpError || error instanceof ReviewError;
}

/** Go writes the API server's own deadline as `10s`. */
function budgetMs(timeout: string | null): number {
  const seconds = /^(\d{1,3})s$/.exec(timeout ?? '')?.[1];
  const askedMs = seconds === undefined ? DEFAULT_BUDGET_MS : Number(seconds) * 1_000;
  return Math.max(Math.min(askedMs, MAX_BUDGET_MS) - ANSWER_MARGIN_MS, ANSWER_MARGIN_MS);
}

async function readBody(message: IncomingMessage, signal: AbortSignal): Promise<string> {
  const tooLarge = new HttpError(413, `the body is larger than ${MAX_BODY_BYTES} bytes`);
  if (Number(message.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw tooLarge;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}
