import type { Readable } from 'node:stream';
import { HttpMethod, RequestContext } from '@kubernetes/client-node';
import { request as send, type Dispatcher } from 'undici';
import { ApiError, ConnectionError, retryAfterMs } from './api-error.ts';
import type { PooledConfig } from './pooled-config.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const UNAUTHORIZED = 401;
const JSON_TYPE = 'application/json';

/** How a PATCH says what to change. */
export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml';

export type QueryValue = string | number | boolean | undefined;

export interface ApiRequest {
  /** GET when left out. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly patchType?: PatchType;
  readonly signal?: AbortSignal;
  /** Called when nothing is left to wait for before the request is sent. What it throws is thrown, and nothing sent. */
  readonly beforeSend?: () => void;
  /** For the whole answer, or for its beginning where it is a stream; 30,000 when left out. */
  readonly timeoutMs?: number;
}

/** Raw JSON to and from the API server, over shared connections. */
export interface ApiClient {
  /**
   * @returns the parsed body of the answer
   * @throws ApiError for a status from 400 on; ConnectionError when there is no whole answer in time
   */
  request(request: ApiRequest): Promise<unknown>;
  /**
   * Begins to read an answer that has no end. The reader ends it by the request's signal.
   * @throws as `request`
   */
  stream(request: ApiRequest): Promise<Readable>;
}

/** A token that the server refuses is read again from its file at once, and the request repeated once. */
export function apiClient({ config, tokens }: Pick<PooledConfig, 'config' | 'tokens'>): ApiClient {
  async function attempt(request: ApiRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const cluster = config.getCurrentCluster();
    if (cluster === null) throw new Error('the configuration names no cluster: set a current context');
    const url = new URL(cluster.server.replace(/\/$/, '') + request.path);
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const context = new RequestContext(url.href, HttpMethod.GET);
    await config.applySecurityAuthentication(context);
    const dispatcher = context.getDispatcher();
    askBeforeSend(request);
    return await send(url, {
      method: request.method ?? 'GET',
      headers: { ...context.getHeaders(), accept: JSON_TYPE, ...contentType(request) },
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal,
      ...(dispatcher && { dispatcher }),
    });
  }

  async function answer(request: ApiRequest, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const first = await attempt(request, signal);
    if (first.statusCode !== UNAUTHORIZED) return first;
    await first.body.dump();
    tokens.expire();
    return await attempt(request, signal);
  }

  async function connected<Result>(request: ApiRequest, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof NotSent) throw error.cause;
      if (error instanceof ApiError || request.signal?.aborted === true) throw error;
      throw new ConnectionError(describe(request), error);
    }
  }

  return {
    request: async (request) =>
      await connected(request, async () => {
        const timeout = AbortSignal.timeout(request.timeoutMs ?? REQUEST_TIMEOUT_MS);
        const signal = request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]);
        const response = await answer(request, signal);
        const text = await response.body.text();
        if (response.statusCode >= 400) throw apiError(request, response, text);
        return text === '' ? undefined : (JSON.parse(text) as unknown);
      }),
    stream: async (request) =>
      await connected(request, async () => {
        const controller = new AbortController();
        const timer = setTimeout(
          () => controller.abort(new DOMException('the answer did not begin in time', 'TimeoutError')),
          request.timeoutMs ?? REQUEST_TIMEOUT_MS,
        );
        const { signal: ends = controller.signal } = request;
        try {
          const response = await answer(request, AbortSignal.any([controller.signal, ends]));
          if (response.statusCode >= 400) throw apiError(request, response, await response.body.text());
          return response.body;
        } finally {
          clearTimeout(timer);
        }
      }),
  };
}

/** Carries what `beforeSend` threw, which is the caller's own and no fault of the connection. */
class NotSent extends Error {
  override readonly name = 'NotSent';
}

function askBeforeSend({ beforeSend }: ApiRequest): void {
  try {
    beforeSend?.();
  } catch (cause) {
    throw new NotSent('refused by the caller', { cause });
  }
}

function contentType({ body, patchType }: ApiRequest): Record<string, string> {
  return body === undefined ? {} : { 'content-type': patchType ?? JSON_TYPE };
}

function apiError(request: ApiRequest, response: Dispatcher.ResponseData, text: string): ApiError {
  const wait = retryAfterMs(response.headers['retry-after'], Date.now());
  return new ApiError(describe(request), response.statusCode, statusOf(text), wait);
}

function statusOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.trim() };
  }
}

function describe({ method = 'GET', path }: ApiRequest): string {
  return `${method} ${path}`;
}
