import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CoreV1Api } from '@kubernetes/client-node';
import { createServer } from 'node:https';
import { once } from 'node:events';
import { createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';
import { describe, expect, it, onTestFinished } from 'vitest';
import { apiClient } from './api-client.ts';
import {
  ApiError,
  ConnectionError,
  isAlreadyExists,
  isConflict,
  isGone,
  isNotFound,
  retryAfterMs,
} from './api-error.ts';
import { type FakeRequest, fakeStatus, startFakeApiServer } from './fake-api-server.ts';
import { pooledConfig } from './pooled-config.ts';
import { tokenFileUser } from './token-file.ts';

async function fake(answer: (request: FakeRequest) => void, user?: Readonly<Record<string, unknown>>) {
  const server = await startFakeApiServer(answer, user);
  onTestFinished(async () => await server.stop());
  return server;
}

describe('apiClient', () => {
  it('sends JSON and reads it', async () => {
    const server = await fake(({ method, url, body, headers, reply }) =>
      reply(200, { method, path: url.pathname, query: url.search, body, type: headers['content-type'] }),
    );
    expect(
      await server.client.request({
        method: 'PATCH',
        path: '/api/v1/pods',
        query: { a: 'b c', none: undefined },
        body: { x: 1 },
        patchType: 'application/merge-patch+json',
      }),
    ).toEqual({
      method: 'PATCH',
      path: '/api/v1/pods',
      query: '?a=b+c',
      body: '{"x":1}',
      type: 'application/merge-patch+json',
    });
  });

  it('shares connections between requests', async () => {
    const server = await fake(({ reply }) => reply(200, {}));
    for (let index = 0; index < 50; index++) await server.client.request({ path: '/x' });
    // A second one is opened when a request comes in the same turn as the answer before it.
    expect(server.connections()).toBeLessThanOrEqual(2);
  });

  it.each([
    [404, 'NotFound', isNotFound],
    [409, 'Conflict', isConflict],
    [409, 'AlreadyExists', isAlreadyExists],
    [410, 'Expired', isGone],
  ])('tells %d %s by its own error', async (code, reason, is) => {
    const server = await fake(({ reply }) => reply(code, fakeStatus(code, reason, 'things "x" bad')));
    const error: unknown = await server.client
      .request({ path: '/api/v1/things/x' })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code, reason });
    expect(String(error)).toContain(`GET /api/v1/things/x: the API server answered ${code}: things "x" bad`);
    expect([isNotFound, isConflict, isAlreadyExists, isGone].filter((each) => each(error))).toEqual([is]);
  });

  it('keeps the answer of something that is no API server readable', async () => {
    const server = await fake(({ response }) => response.writeHead(502).end('<html>bad gateway</html>'));
    const answer = server.client.request({ path: '/x' });
    await expect(answer).rejects.toThrow('502: <html>bad gateway</html>');
    await expect(answer).rejects.toMatchObject({ code: 502, said: '<html>bad gateway</html>' });
  });

  it('an answer that does not end is a ConnectionError at the deadline', async () => {
    const server = await fake(({ response }) => response.writeHead(200).write('{'));
    const error: unknown = await server.client
      .request({ path: '/x', timeoutMs: 50 })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(String(error)).toContain('GET /x: no answer from the API server');
  });

  it('reads a refused token again from its file, once', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'token-'));
    onTestFinished(async () => await rm(directory, { recursive: true }));
    const path = join(directory, 'token');
    await writeFile(path, 'old\n');
    const seen: (string | undefined)[] = [];
    let good = 'Bearer old';
    const server = await fake(
      ({ headers, reply }) => {
        seen.push(headers.authorization);
        reply(headers.authorization === good ? 200 : 401, {});
      },
      { ...tokenFileUser('agent', path) },
    );
    await server.client.request({ path: '/1' });
    good = 'Bearer new';
    await writeFile(path, 'new\n');
    await server.client.request({ path: '/2' });
    good = 'Bearer nobody';
    await expect(server.client.request({ path: '/3' })).rejects.toThrow('401');
    expect(seen).toEqual(['Bearer old', 'Bearer old', 'Bearer new', 'Bearer new', 'Bearer new']);
  });

  it('sends nothing that its caller refuses at the last moment', async () => {
    const server = await fake(({ reply }) => reply(200, {}));
    const refusal = new Error('not any more');
    const request = server.client.request({
      method: 'POST',
      path: '/api/v1/things',
      beforeSend: () => {
        throw refusal;
      },
    });
    await expect(request).rejects.toBe(refusal);
    expect(server.requests).toEqual([]);
  });
});

describe('pooledConfig', () => {
  it('shares TLS connections, typed calls too, until the CA changes', async () => {
    const validity = { now: new Date(), validForMs: 60_000 };
    const authority = await createAuthority({ commonName: 'ca', ...validity });
    const { certificate, key } = await issueCertificate(authority, {
      commonName: 'server',
      dnsNames: ['localhost'],
      usages: ['server'],
      ...validity,
    });
    let connections = 0;
    const server = createServer({ cert: certificate, key }, (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[],"metadata":{}}');
    });
    server.on('secureConnection', () => connections++);
    server.listen(0);
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const cluster = (ca: string) => ({
      name: 'c',
      server: `https://localhost:${port}`,
      caData: Buffer.from(ca).toString('base64'),
      skipTLSVerify: false,
    });
    const pool = pooledConfig((config) =>
      config.loadFromClusterAndUser(cluster(authority.certificate), { name: 'u' }),
    );
    onTestFinished(async () => {
      await pool.close();
      server.close();
    });
    const client = apiClient(pool);
    for (let index = 0; index < 50; index++) await client.request({ path: '/api/v1/pods' });
    const typed = pool.config.makeApiClient(CoreV1Api);
    for (let index = 0; index < 50; index++) await typed.listNode();
    const shared = connections;
    expect(shared).toBeLessThanOrEqual(2);
    pool.config.clusters = [cluster(`${authority.certificate}\n`)];
    await client.request({ path: '/api/v1/pods' });
    expect(connections).toBe(shared + 1);
    pool.config.clusters = [
      cluster((await createAuthority({ commonName: 'other', ...validity })).certificate),
    ];
    await expect(client.request({ path: '/api/v1/pods' })).rejects.toThrow('no answer from the API server');
  });
});

describe('retryAfterMs', () => {
  it.each([
    ['3', 3_000],
    ['Thu, 01 Jan 1970 00:00:05 GMT', 5_000],
    ['soon', undefined],
    ['-1', undefined],
    [undefined, undefined],
  ])('of %j is %s', (header, ms) => {
    expect(retryAfterMs(header, 0)).toBe(ms);
  });
});
