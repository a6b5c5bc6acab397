import { KeyObject, webcrypto } from 'node:crypto';
// What x509 is built on needs this polyfill to be there first.
import 'reflect-metadata';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;
/** A certificate is valid this long before it was made, for peers whose clock is behind. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

/** A certificate and its private key (PKCS #8), both as PEM. */
export interface CertifiedKey {
  readonly certificate: string;
  readonly key: string;
}

export interface AuthorityRequest {
  readonly commonName: string;
  readonly now: Date;
  readonly validForMs: number;
}

export interface CertificateRequest extends AuthorityRequest {
  /** What Kubernetes takes for the groups of a client. */
  readonly organizations?: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  /** Which end of a connection may show it. */
  readonly usages: readonly ('client' | 'server')[];
}

/** Makes a self-signed certificate authority that signs leaf certificates only (ECDSA P-256). */
export async function createAuthority(request: AuthorityRequest): Promise<CertifiedKey> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [request.commonName] }],
    ...validity(request),
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return certifiedKey(certificate, keys.privateKey);
}

/**
 * Makes a key and has the authority certify it. The certificate ends with the authority's at the latest.
 *
 * @throws Error when the authority has ended, or is not a P-256 key with its certificate
 */
export async function issueCertificate(
  authority: CertifiedKey,
  request: CertificateRequest,
): Promise<CertifiedKey> {
  const issuer = new X509Certificate(authority.certificate);
  if (issuer.notAfter <= request.now) {
    throw new Error(
      `the certificate authority ${issuer.subject} ended at ${issuer.notAfter.toISOString()}: make a new one`,
    );
  }
  const { notBefore, notAfter } = validity(request);
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    subject: [
      ...(request.organizations ?? []).map((organization) => ({ O: [organization] })),
      { CN: [request.commonName] },
    ],
    issuer: issuer.subjectName,
    notBefore,
    notAfter: notAfter < issuer.notAfter ? notAfter : issuer.notAfter,
    publicKey: keys.publicKey,
    signingKey: await signingKey(authority.key),
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: await leafExtensions(request, issuer, keys.publicKey),
  });
  return certifiedKey(certificate, keys.privateKey);
}

async function leafExtensions(
  request: CertificateRequest,
  issuer: X509Certificate,
  publicKey: webcrypto.CryptoKey,
): Promise<Extension[]> {
  const names = [
    ...(request.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(request.ipAddresses ?? []).map((value) => ({ type: 'ip' as const, value })),
  ];
  const usages = request.usages.map(
    (usage) => ExtendedKeyUsage[usage === 'client' ? 'clientAuth' : 'serverAuth'],
  );
  return [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension(usages),
    await SubjectKeyIdentifierExtension.create(publicKey),
    await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
  ];
}

function validity({ now, validForMs }: AuthorityRequest): { notBefore: Date; notAfter: Date } {
  return {
    notBefore: new Date(now.getTime() - CLOCK_TOLERANCE_MS),
    notAfter: new Date(now.getTime() + validForMs),
  };
}

async function signingKey(pem: string): Promise<webcrypto.CryptoKey> {
  return await webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), KEY_ALGORITHM, false, [
    'sign',
  ]);
}

function certifiedKey(certificate: X509Certificate, key: webcrypto.CryptoKey): CertifiedKey {
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
