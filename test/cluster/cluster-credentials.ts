import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CertifiedKey, createAuthority, issueCertificate } from '@runtime-enforcer/certs/authority';

const VALID_FOR_MS = 86_400_000;

/** What a control plane and its first user prove themselves with, in memory and in files of one directory. */
export interface ClusterCredentials {
  readonly authority: CertifiedKey;
  /** A member of `system:masters`. */
  readonly admin: CertifiedKey;
  /** A server's certificate for 127.0.0.1 and localhost. */
  readonly server: CertifiedKey;
  readonly file: (name: CredentialFile) => string;
}

export type CredentialFile = 'ca.crt' | 'server.crt' | 'server.key' | 'sa.key' | 'sa.pub';

/**
 * Makes a certificate authority, its certificates, and the key that signs service accounts' tokens.
 *
 * @param addresses of the servers, besides 127.0.0.1
 */
export async function makeClusterCredentials(
  directory: string,
  addresses: readonly string[] = [],
): Promise<ClusterCredentials> {
  const now = new Date();
  const common = { now, validForMs: VALID_FOR_MS };
  const authority = await createAuthority({ commonName: 'test-cluster', ...common });
  const server = await issueCertificate(authority, {
    commonName: 'kube-apiserver',
    dnsNames: ['localhost', 'kubernetes.default.svc'],
    ipAddresses: ['127.0.0.1', ...addresses],
    usages: ['server'],
    ...common,
  });
  const admin = await issueUserCertificate(authority, 'admin', ['system:masters']);
  const serviceAccounts = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const contents: Record<CredentialFile, string | Buffer> = {
    'ca.crt': authority.certificate,
    'server.crt': server.certificate,
    'server.key': server.key,
    'sa.key': serviceAccounts.privateKey.export({ type: 'sec1', format: 'pem' }),
    'sa.pub': serviceAccounts.publicKey.export({ type: 'spki', format: 'pem' }),
  };
  for (const [name, content] of Object.entries(contents)) {
    await writeFile(join(directory, name), content, { mode: 0o600 });
  }
  return { authority, admin, server, file: (name) => join(directory, name) };
}

/** A client certificate with which the API server takes its holder for a user, for example one that RBAC knows. */
export async function issueUserCertificate(
  authority: CertifiedKey,
  user: string,
  groups: readonly string[] = [],
): Promise<CertifiedKey> {
  const usages = ['client'] as const;
  const validity = { now: new Date(), validForMs: VALID_FOR_MS };
  return await issueCertificate(authority, { commonName: user, organizations: groups, usages, ...validity });
}
