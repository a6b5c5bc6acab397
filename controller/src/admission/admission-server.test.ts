import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { type CertifiedKey, createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';
import { certificateStore } from '@runtime-enforcer/certs/certificate-store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SILENT_LOG } from '../testing/silent.ts';
import type { Admit } from './admission-review.ts';
import { admissionServer } from './admission-server.ts';

const HOST = '127.0.0.1';
const lifetime = { now: new Date(), validForMs: 3_600_000 };
const authority = await createAuthority({ commonName: 'ca', ...lifetime });
const issue = async (): Promise<CertifiedKey> =>
  await issueCertificate(authority, {
    commonName: 'hook',
    ipAddresses: [HOST],
    usages: ['server'],
    ...lifetime,
  });

const directory = await mkdtemp(join(tmpdir(), 'admission-server-'));
async function write({ certificate, key }: CertifiedKey): Promise<void> {
  await writeFile(join(directory, 'tls.crt'), certificate);
  await writeFile(join(directory, 'tls.key'), key);
  await writeFile(join(directory, 'ca.crt'), authority.certificate);
}

const never = Promise.withResolvers<never>();
const admits: Record<string, Admit> = {
  '/allow': () => Promise.resolve({ allowed: true, warnings: ['x'.repeat(1_000)] }),
  '/deny': () => Promise.resolve({ allowed: false, refusal: { code: 422, message: 'no', field: 'spec.x' } }),
  '/patch': () =>
    Promise.resolve({ allowed: true, patch: [{ op: 'add', path: '/metadata/labels', value: { é: '1' } }] }),
  '/throw': () => Promise.reject(new Error('the API server is away')),
  '/slow': async (_, signal) => {
    signal.addEventListener('abort', () => never.reject(signal.reason));
    return await never.promise;
  },
};

const certificates = certificateStore({ directory, onRefused: () => undefined });
const observed: string[] = [];
const server = admissionServer({
  routes: new Map(Object.entries(admits)),
  certificates,
  host: HOST,
  port: 0,
  log: SILENT_LOG,
  observe: (route, result) => observed.push(`${route} ${result}`),
});
let port = 0;
beforeAll(async () => {
  await write(await issue());
  await certificates.start();
  port = await server.start();
});
afterAll(async () => {
  await server.stop();
  certificates.stop();
  await rm(directory, { recursive: true });
});

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly protocol: string | null;
  readonly serial: string;
}

async function send(
  path: string,
  body: string | Buffer = review(),
  options: { method?: string; type?: string; agent?: Agent; maxVersion?: 'TLSv1.2' } = {},
): Promise<Answer> {
  const { method = 'POST', type = 'application/json', agent, maxVersion } = options;
  return await new Promise((resolve, reject) => {
    const sent = request(
      {
        host: HOST,
        port,
        path,
        method,
        ca: authority.certificate,
        headers: { 'content-type': type },
        agent: agent ?? false,
        ...(maxVersion && { maxVersion }),
      },
      (response) => {
        const { socket } = response;
        if (!(socket instanceof TLSSocket)) throw new Error('the connection is not encrypted');
        const about = { protocol: socket.getProtocol(), serial: socket.getPeerCertificate().serialNumber };
        response.toArray().then((chunks) => {
          const text = Buffer.concat(chunks as Buffer[]).toString();
          const json = JSON.parse(text) as Record<string, unknown>;
          resolve({ status: response.statusCode ?? 0, body: json, ...about });
        }, reject);
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function review(request: object = {}): string {
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'r-1', operation: 'CREATE', ...request },
  });
}

describe('admissionServer', () => {
  it('answers a review over TLS 1.3 with its uid', async () => {
    const { status, body, protocol } = await send('/allow?timeout=10s');
    expect([status, protocol]).toEqual([200, 'TLSv1.3']);
    expect(body).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'r-1', allowed: true, warnings: ['x'.repeat(256)] },
    });
  });

  it('refuses with a status that names the field, and patches', async () => {
    const denied = await send('/deny');
    expect(denied.body['response']).toEqual({
      uid: 'r-1',
      allowed: false,
      status: {
        status: 'Failure',
        code: 422,
        reason: 'Invalid',
        message: 'no',
        details: { causes: [{ reason: 'FieldValueInvalid', field: 'spec.x', message: 'no' }] },
      },
    });
    const { response } = (await send('/patch')).body as { response: { patch: string; patchType: string } };
    expect(response.patchType).toBe('JSONPatch');
    expect(JSON.parse(Buffer.from(response.patch, 'base64').toString())).toEqual([
      { op: 'add', path: '/metadata/labels', value: { é: '1' } },
    ]);
  });

  it('gives no verdict, for the failure policy to decide, when it cannot judge in time', async () => {
    expect(await send('/throw')).toMatchObject({ status: 500, body: { message: 'the API server is away' } });
    expect(await send('/slow?timeout=1s')).toMatchObject({ status: 500 });
    expect(observed).toEqual(expect.arrayContaining(['/allow warned', '/deny denied', '/throw error']));
  });

  it.each([
    ['another path', '/nowhere', review(), {}, 404],
    ['another method', '/allow', '', { method: 'GET' }, 405],
    ['another type', '/allow', review(), { type: 'text/plain' }, 415],
    ['no JSON', '/allow', '{', {}, 400],
    ['bytes', '/allow', Buffer.from([0xff, 0xfe, 0]), {}, 400],
    ['another kind', '/allow', '{"kind":"Pod"}', {}, 400],
    ['null', '/allow', 'null', {}, 400],
    ['no uid', '/allow', review({ uid: 5 }), {}, 400],
    ['too much', '/allow', Buffer.alloc(3 * 1024 * 1024 + 1), {}, 413],
  ])('refuses %s', async (_, path, body, options, status) => {
    expect((await send(path, body, options)).status).toBe(status);
  });

  it('takes whatever stands in a review', async () => {
    const hostile = review({ object: { metadata: { labels: [] } }, userInfo: { groups: [1], extra: null } });
    expect((await send('/allow', hostile)).status).toBe(200);
  });

  it('speaks no older TLS', async () => {
    await expect(send('/allow', review(), { maxVersion: 'TLSv1.2' })).rejects.toThrow();
  });

  it('shows a new certificate at once, and goes on with the old one while there is a broken one', async () => {
    const agent = new Agent({ keepAlive: true, ca: authority.certificate });
    const before = await send('/allow', review(), { agent });
    await writeFile(join(directory, 'tls.key'), 'broken');
    expect(await certificates.reload()).toBe(false);
    expect((await send('/allow')).serial).toBe(before.serial);
    await write(await issue());
    await certificates.reload();
    expect((await send('/allow')).serial).not.toBe(before.serial);
    expect((await send('/allow', review(), { agent })).serial).not.toBe(before.serial);
    agent.destroy();
  });
});
