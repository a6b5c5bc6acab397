import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createAuthority, issueCertificate } from './authority.ts';

const DAY_MS = 86_400_000;
const now = new Date();
const authority = await createAuthority({ commonName: 'test-ca', now, validForMs: 2 * DAY_MS });

describe('createAuthority', () => {
  it('makes a certificate that may sign, and signs itself', () => {
    const certificate = new X509Certificate(authority.certificate);
    expect(certificate.ca).toBe(true);
    expect(certificate.subject).toBe('CN=test-ca');
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.validToDate.getTime()).toBeCloseTo(now.getTime() + 2 * DAY_MS, -4);
  });
});

describe('issueCertificate', () => {
  it('makes a leaf of the authority with names and groups', async () => {
    const leaf = await issueCertificate(authority, {
      commonName: 'admin',
      organizations: ['system:masters'],
      dnsNames: ['agent-x.runtime-enforcer'],
      ipAddresses: ['127.0.0.1', '::1'],
      usages: ['server'],
      now,
      validForMs: DAY_MS,
    });
    const certificate = new X509Certificate(leaf.certificate);
    expect(certificate.ca).toBe(false);
    expect(certificate.checkIssued(new X509Certificate(authority.certificate))).toBe(true);
    expect(certificate.verify(new X509Certificate(authority.certificate).publicKey)).toBe(true);
    expect(certificate.subject).toBe('O=system:masters\nCN=admin');
    expect(certificate.checkHost('agent-x.runtime-enforcer')).toBe('agent-x.runtime-enforcer');
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.checkHost('other')).toBeUndefined();
  });

  it('never outlives its authority', async () => {
    const leaf = await issueCertificate(authority, {
      commonName: 'x',
      usages: ['client'],
      now,
      validForMs: 365 * DAY_MS,
    });
    const [mine, its] = [leaf, authority].map(({ certificate }) => new X509Certificate(certificate));
    expect(mine?.validTo).toBe(its?.validTo);
  });

  it('refuses an authority that has ended', async () => {
    const later = new Date(now.getTime() + 3 * DAY_MS);
    const request = { commonName: 'x', usages: ['client'] as const, now: later, validForMs: DAY_MS };
    await expect(issueCertificate(authority, request)).rejects.toThrow('make a new one');
  });

  it('serves mutual TLS 1.3, and each end only in its part', async () => {
    const issue = async (commonName: string, usage: 'client' | 'server') =>
      await issueCertificate(authority, {
        commonName,
        dnsNames: [commonName],
        usages: [usage],
        now,
        validForMs: DAY_MS,
      });
    const identity = { server: await issue('server', 'server'), client: await issue('client', 'client') };
    const server = createServer({
      cert: identity.server.certificate,
      key: identity.server.key,
      ca: authority.certificate,
      requestCert: true,
      minVersion: 'TLSv1.3',
    });
    server.on('secureConnection', (socket: TLSSocket) => socket.end('hello'));
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const greet = async (who: keyof typeof identity): Promise<string> => {
      const { certificate: cert, key } = identity[who];
      const socket = connect({
        port,
        host: '127.0.0.1',
        servername: 'server',
        ca: authority.certificate,
        cert,
        key,
      });
      const chunks: Buffer[] = [];
      for await (const chunk of socket) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString();
    };
    expect(await greet('client')).toBe('hello');
    expect(await greet('server').catch(() => 'refused')).not.toBe('hello');
    server.close();
  });
});
