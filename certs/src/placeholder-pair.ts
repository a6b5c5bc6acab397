import { createAuthority, issueCertificate } from './authority.ts';
import { type KeyPair, parseKeyPair } from './key-pair.ts';

const COMMON_NAME = 'no certificate yet';
const VALID_FOR_MS = 10 * 365 * 24 * 3_600_000;

/**
 * A pair that nobody trusts and that trusts nobody: its authority is made here and its key forgotten. A program can
 * stand on it until its directory has a usable pair; whoever connects meanwhile fails, in either direction.
 */
export async function placeholderPair(now: Date): Promise<KeyPair> {
  const request = { commonName: COMMON_NAME, now, validForMs: VALID_FOR_MS };
  const authority = await createAuthority(request);
  const { certificate, key } = await issueCertificate(authority, {
    ...request,
    usages: ['client', 'server'],
  });
  return parseKeyPair({ 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate }, now);
}
