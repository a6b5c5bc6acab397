import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get as httpsGet } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { type CertifiedKey, createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';
import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { afterEach, describe, expect, it } from 'vitest';
import { createHealthEndpoint } from './health-endpoint.ts';
import { createHttpEndpoint } from './http-endpoint.ts';
import { createMetricsEndpoint } from './metrics-endpoint.ts';

const ADDRESS = { host: '127.0.0.1', port: 0 };
const METRICS = { text: () => Promise.resolve('up 1\n'), contentType: 'text/plain; version=0.0.4' };

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function answerOf(url: string, init: RequestInit = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(url, init);
  return { status: response.status, text: await response.text() };
}

describe('the metrics endpoint', () => {
  it('serves /metrics only, for reading only', async () => {
    const endpoint = createMetricsEndpoint({ address: ADDRESS, metrics: METRICS });
    const url = `http://127.0.0.1:${await endpoint.start()}`;
    stops.push(() => endpoint.stop());
    const response = await fetch(`${url}/metrics?x=1`);
    expect(response.headers.get('content-type')).toBe(METRICS.contentType);
    expect(await response.text()).toBe('up 1\n');
    expect((await answerOf(`${url}/`)).status).toBe(404);
    expect((await answerOf(`${url}/metrics`, { method: 'POST', body: 'x' })).status).toBe(404);
  });

  it('says so where the metrics cannot be read, and goes on', async () => {
    const metrics = { ...METRICS, text: () => Promise.reject(new Error('secret')) };
    const endpoint = createMetricsEndpoint({ address: ADDRESS, metrics });
    const url = `http://127.0.0.1:${await endpoint.start()}/metrics`;
    stops.push(() => endpoint.stop());
    expect(await answerOf(url)).toEqual({ status: 500, text: 'this could not be read\n' });
    expect((await answerOf(url)).status).toBe(500);
  });

  it('lets in whom it should, and nobody when that cannot be found out', async () => {
    const endpoint = createMetricsEndpoint({
      address: ADDRESS,
      metrics: METRICS,
      authorize: (authorization) =>
        authorization === 'broken'
          ? Promise.reject(new Error('away'))
          : Promise.resolve(
              authorization === undefined ? 'unknown' : authorization === 'a' ? 'granted' : 'forbidden',
            ),
    });
    const url = `http://127.0.0.1:${await endpoint.start()}/metrics`;
    stops.push(() => endpoint.stop());
    expect((await answerOf(url)).status).toBe(401);
    for (const [authorization, status] of [
      ['a', 200],
      ['b', 403],
      ['broken', 500],
    ] as const) {
      expect((await answerOf(url, { headers: { authorization } })).status).toBe(status);
    }
  });

  it('rejects where the address is taken', async () => {
    const first = createMetricsEndpoint({ address: ADDRESS, metrics: METRICS });
    const port = await first.start();
    stops.push(() => first.stop());
    const second = createMetricsEndpoint({ address: { ...ADDRESS, port }, metrics: METRICS });
    await expect(second.start()).rejects.toThrow('EADDRINUSE');
    await second.stop();
  });

  it('ends with connections that ask for nothing', async () => {
    const endpoint = createMetricsEndpoint({ address: ADDRESS, metrics: METRICS });
    const port = await endpoint.start();
    const socket = connect(port, '127.0.0.1');
    const ended = Promise.withResolvers<undefined>();
    socket.on('error', () => undefined).on('close', () => ended.resolve(undefined));
    await new Promise((resolve) => socket.once('connect', resolve));
    await endpoint.stop();
    await ended.promise;
  });
});

describe('the health endpoint', () => {
  it('is as true as the moment in which it is asked', async () => {
    let problems: string[] = [];
    const endpoint = createHealthEndpoint(ADDRESS, { live: () => [], ready: () => problems });
    const url = `http://127.0.0.1:${await endpoint.start()}`;
    stops.push(() => endpoint.stop());
    expect(await answerOf(`${url}/readyz`)).toEqual({ status: 200, text: 'ok\n' });
    problems = ['not attached', 'no runtime'];
    expect(await answerOf(`${url}/readyz`)).toEqual({ status: 503, text: 'not attached\nno runtime\n' });
    expect((await answerOf(`${url}/healthz`)).status).toBe(200);
    problems = [];
    expect((await answerOf(`${url}/readyz`)).status).toBe(200);
    expect((await answerOf(`${url}/other`)).status).toBe(404);
  });

  it('is not in order where that cannot be told', async () => {
    const fail = (): never => {
      throw new Error('x');
    };
    const endpoint = createHealthEndpoint(ADDRESS, { live: fail, ready: fail });
    const url = `http://127.0.0.1:${await endpoint.start()}`;
    stops.push(() => endpoint.stop());
    expect((await answerOf(`${url}/healthz`)).status).toBe(500);
  });
});

describe('with certificates', () => {
  const VALID_MS = 600_000;

  async function writePair(directory: string, authority: CertifiedKey): Promise<void> {
    const now = new Date();
    const pair = await issueCertificate(authority, {
      ...{ commonName: 'agent', now, validForMs: VALID_MS, usages: ['server'], dnsNames: ['localhost'] },
    });
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, 'tls.crt'), pair.certificate);
    await writeFile(join(directory, 'tls.key'), pair.key);
    await writeFile(join(directory, 'ca.crt'), authority.certificate);
  }

  /** The answer, and the fingerprint of the certificate that was shown. */
  async function secureAnswer(port: number, ca: string): Promise<{ status: number; fingerprint: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; fingerprint: string }>();
    const request = httpsGet({ port, host: 'localhost', path: '/metrics', ca, agent: false }, (response) => {
      const { socket } = response;
      const fingerprint = socket instanceof TLSSocket ? socket.getPeerCertificate().fingerprint256 : '';
      response.resume().on('end', () => resolve({ status: response.statusCode ?? 0, fingerprint }));
    });
    request.on('error', reject);
    return await promise;
  }

  it('speaks TLS only, and shows a new pair without a restart, but no broken one', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'http-endpoint-'));
    stops.push(() => rm(directory, { recursive: true }));
    const authority = await createAuthority({ commonName: 'ca', now: new Date(), validForMs: VALID_MS });
    await writePair(directory, authority);
    const refused: unknown[] = [];
    const store = certificateStore({ directory, onRefused: (error) => refused.push(error), pollMs: 60_000 });
    await store.start();
    stops.push(() => store.stop());
    const endpoint = createHttpEndpoint({
      ...{ address: { host: 'localhost', port: 0 }, certificates: store, nothing: 'nothing' },
      answer: () => ({ status: 200, text: 'x' }),
    });
    const port = await endpoint.start();
    stops.push(() => endpoint.stop());
    const ca = authority.certificate;
    expect(await secureAnswer(port, ca)).toEqual({ status: 200, fingerprint: store.current().fingerprint });
    await expect(fetch(`http://localhost:${port}/metrics`)).rejects.toThrow();
    const before = store.current().fingerprint;
    await writePair(directory, authority);
    await store.reload();
    expect(store.current().fingerprint).not.toBe(before);
    expect((await secureAnswer(port, ca)).fingerprint).toBe(store.current().fingerprint);
    await writeFile(join(directory, 'tls.key'), 'no key');
    await store.reload();
    expect(refused.length).toBeGreaterThan(0);
    expect((await secureAnswer(port, ca)).fingerprint).toBe(store.current().fingerprint);
  });
});
