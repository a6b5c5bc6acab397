import { X509Certificate } from 'node:crypto';
import { issueCertificate } from '@runtime-enforcer/certs/authority';
import { type KeyPair, parseKeyPair } from '@runtime-enforcer/certs/key-pair';
import type { AuthorityRecord, SecretFields } from './authority-record.ts';

/** The last part of its life, in which a certificate is renewed. */
const RENEWAL = 1 / 3;

/**
 * What the secret of one part is to hold now: the certificate that it has, as long as the present authority has signed
 * it, for these names, and it is not near its end; else a new one with a new key. Equal to what was given where nothing
 * has to change.
 */
export async function renewedCertificate(
  fields: SecretFields,
  options: {
    readonly authority: AuthorityRecord;
    readonly dnsNames: readonly string[];
    readonly lifetimeMs: number;
    readonly now: Date;
  },
): Promise<SecretFields> {
  const { authority, dnsNames, lifetimeMs, now } = options;
  const certificate = fields['tls.crt'] ?? '';
  const key = fields['tls.key'] ?? '';
  const kept = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.trusted };
  if (isGood(readPair(kept, now), options)) return kept;
  const issued = await issueCertificate(authority.current, {
    commonName: dnsNames[0] ?? '',
    dnsNames,
    usages: ['client', 'server'],
    now,
    validForMs: lifetimeMs,
  });
  return { 'tls.crt': issued.certificate, 'tls.key': issued.key, 'ca.crt': authority.trusted };
}

function readPair(fields: Parameters<typeof parseKeyPair>[0], now: Date): KeyPair | undefined {
  try {
    return parseKeyPair(fields, now);
  } catch {
    return undefined;
  }
}

function isGood(pair: KeyPair | undefined, options: Parameters<typeof renewedCertificate>[1]): boolean {
  if (pair === undefined) return false;
  const { authority, dnsNames, lifetimeMs, now } = options;
  const certificate = new X509Certificate(pair.certificate);
  const issuer = new X509Certificate(authority.current.certificate);
  if (!certificate.verify(issuer.publicKey)) return false;
  const names = new Set((certificate.subjectAltName ?? '').split(', '));
  if (names.size !== dnsNames.length || !dnsNames.every((name) => names.has(`DNS:${name}`))) return false;
  const end = pair.notAfter.getTime();
  // What the authority's own end cuts short is not made again and again.
  const isLongest = end >= issuer.validToDate.getTime();
  return isLongest || end - now.getTime() > lifetimeMs * RENEWAL;
}
