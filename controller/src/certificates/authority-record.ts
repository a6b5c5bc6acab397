import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type CertifiedKey, createAuthority } from '@runtime-enforcer/certs/authority';

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
/** The last part of its life in which an authority has a successor. */
const SUCCESSION = 1 / 4;
/** Kubelet takes up to two minutes to replace the files of a mounted secret. */
const MAX_ANNOUNCEMENT_MS = 3_600_000;
/** The announcement of an authority that lives only briefly. */
const ANNOUNCEMENT = 1 / 16;

/** What is kept of the authority of a release. */
export interface AuthorityRecord {
  /** Signs. */
  readonly current: CertifiedKey;
  /** Is trusted already, and will sign when everybody has heard of it. */
  readonly next: { readonly pair: CertifiedKey; readonly since: Date } | undefined;
  /** The certificates of all that are to be trusted, as PEM. */
  readonly trusted: string;
}

/** The fields of a secret in which a record is kept. */
export type SecretFields = Readonly<Record<string, string>>;

/**
 * What the authority is to be now: a first one, a successor that is announced before it signs, and none trusted that has
 * ended. Equal to what was given where nothing has to change.
 *
 * @param fields of the secret, empty for one that was never written; what cannot be used is made anew
 */
export async function renewedAuthority(
  fields: SecretFields,
  options: { readonly commonName: string; readonly lifetimeMs: number; readonly now: Date },
): Promise<AuthorityRecord> {
  const { commonName, lifetimeMs, now } = options;
  const make = async (): Promise<CertifiedKey> =>
    await createAuthority({ commonName, now, validForMs: lifetimeMs });
  const read = readRecord(fields);
  const trusted = living(fields['ca.crt'] ?? '', now);
  const ended = read === undefined || endOf(read.current) <= now;
  if (ended && (read?.next === undefined || endOf(read.next.pair) <= now)) {
    const current = await make();
    return { current, next: undefined, trusted: bundle([...trusted, current.certificate]) };
  }
  const { current, next } = read;
  const announcementMs = Math.min(MAX_ANNOUNCEMENT_MS, lifetimeMs * ANNOUNCEMENT);
  if (next !== undefined && (ended || now.getTime() - next.since.getTime() >= announcementMs)) {
    return { current: next.pair, next: undefined, trusted: bundle([...trusted, next.pair.certificate]) };
  }
  if (next === undefined && endOf(current).getTime() - now.getTime() <= lifetimeMs * SUCCESSION) {
    const pair = await make();
    return {
      current,
      next: { pair, since: now },
      trusted: bundle([...trusted, current.certificate, pair.certificate]),
    };
  }
  const all = [current.certificate, ...(next === undefined ? [] : [next.pair.certificate])];
  return { current, next, trusted: bundle([...trusted, ...all]) };
}

/** The fields in which a record is kept. */
export function recordFields({ current, next, trusted }: AuthorityRecord): SecretFields {
  return {
    'tls.crt': current.certificate,
    'tls.key': current.key,
    'ca.crt': trusted,
    ...(next && {
      'next.crt': next.pair.certificate,
      'next.key': next.pair.key,
      'next.since': next.since.toISOString(),
    }),
  };
}

function readRecord(fields: SecretFields): Omit<AuthorityRecord, 'trusted'> | undefined {
  const current = readPair(fields['tls.crt'], fields['tls.key']);
  if (current === undefined) return undefined;
  const pair = readPair(fields['next.crt'], fields['next.key']);
  const since = new Date(fields['next.since'] ?? '');
  const isAnnounced = pair !== undefined && !Number.isNaN(since.getTime());
  return { current, next: isAnnounced ? { pair, since } : undefined };
}

/** Undefined for what is no certificate with its key. */
function readPair(certificate: string | undefined, key: string | undefined): CertifiedKey | undefined {
  if (certificate === undefined || key === undefined) return undefined;
  try {
    const isPair = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
    return isPair ? { certificate, key } : undefined;
  } catch {
    return undefined;
  }
}

function endOf({ certificate }: CertifiedKey): Date {
  return new X509Certificate(certificate).validToDate;
}

/** The certificates of a PEM text that can be read and have not ended. */
function living(text: string, now: Date): string[] {
  return (text.match(PEM_CERTIFICATE) ?? []).filter((block) => {
    try {
      return new X509Certificate(block).validToDate > now;
    } catch {
      return false;
    }
  });
}

function bundle(certificates: readonly string[]): string {
  return [...new Set(certificates.map((each) => `${each.trim()}\n`))].join('');
}
