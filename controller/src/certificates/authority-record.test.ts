import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { recordFields, renewedAuthority, type SecretFields } from './authority-record.ts';
import { renewedCertificate } from './renewed-certificate.ts';

const HOUR_MS = 3_600_000;
const AUTHORITY_MS = 320 * HOUR_MS;
const LEAF_MS = 40 * HOUR_MS;
const START = new Date('2026-01-01T00:00:00Z');
const NAMES = ['release-agent'];

const at = (ms: number) => new Date(START.getTime() + ms);
const authorityAt = async (fields: SecretFields, ms: number) =>
  await renewedAuthority(fields, { commonName: 'release-ca', lifetimeMs: AUTHORITY_MS, now: at(ms) });
const leafAt = async (
  fields: SecretFields,
  authority: Awaited<ReturnType<typeof authorityAt>>,
  ms: number,
  dnsNames = NAMES,
) => await renewedCertificate(fields, { authority, dnsNames, lifetimeMs: LEAF_MS, now: at(ms) });

function trusts(bundle: string, leaf: string, now: Date): boolean {
  const certificate = new X509Certificate(leaf);
  const authorities = bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  return (
    certificate.validToDate > now &&
    authorities.some((each) => {
      const authority = new X509Certificate(each);
      return authority.validToDate > now && certificate.verify(authority.publicKey);
    })
  );
}

describe('an authority and its certificates over their lives', () => {
  it('are replaced so that who is an hour behind still trusts, and is trusted', async () => {
    const stepMs = HOUR_MS / 2;
    const lag = 1;
    let authority: SecretFields = {};
    let leaf: SecretFields = {};
    const bundles: string[] = [];
    const leaves: string[] = [];
    const signers = new Set<string>();
    for (let step = 0; step * stepMs < 2.2 * AUTHORITY_MS; step++) {
      const ms = step * stepMs;
      const record = await authorityAt(authority, ms);
      authority = recordFields(record);
      leaf = await leafAt(leaf, record, ms);
      bundles.push(leaf['ca.crt'] ?? '');
      leaves.push(leaf['tls.crt'] ?? '');
      signers.add(record.current.certificate);
      // Looked at where something has changed, and a while after.
      const recent = leaves.slice(-1 - lag);
      if (new Set([...recent, ...bundles.slice(-1 - lag)]).size <= 2) continue;
      for (const bundle of bundles.slice(-1 - lag))
        for (const shown of recent) expect(trusts(bundle, shown, at(ms)), `hour ${step / 2}`).toBe(true);
    }
    expect(signers.size).toBe(3);
    expect(new Set(leaves).size).toBeGreaterThan(20);
    expect(bundles.at(-1)?.match(/BEGIN/g)?.length).toBeLessThanOrEqual(2);
  });

  it('change nothing where nothing has to change', async () => {
    const record = await authorityAt({}, 0);
    const again = await authorityAt(recordFields(record), HOUR_MS);
    expect(recordFields(again)).toEqual(recordFields(record));
    const leaf = await leafAt({}, record, 0);
    expect(await leafAt(leaf, again, HOUR_MS)).toEqual(leaf);
  });
});

describe('renewedAuthority', () => {
  it.each<[string, SecretFields]>([
    ['text', { 'tls.crt': 'x', 'tls.key': 'y', 'ca.crt': 'z' }],
    ['no key', { 'tls.crt': '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----' }],
  ])('makes a new authority of what cannot be used: %s', async (_, fields) => {
    const { current, trusted } = await authorityAt(fields, 0);
    expect(trusted).toBe(current.certificate);
    expect(new X509Certificate(current.certificate).subject).toBe('CN=release-ca');
  });

  it('replaces an authority that ended unnoticed, and forgets it', async () => {
    const old = await authorityAt({}, 0);
    const fresh = await authorityAt(recordFields(old), AUTHORITY_MS + HOUR_MS);
    expect(fresh.current.certificate).not.toBe(old.current.certificate);
    expect(fresh.trusted).toBe(fresh.current.certificate);
  });

  it('lets a successor sign that was announced when its predecessor ended unnoticed', async () => {
    const old = await authorityAt({}, 0);
    const announced = await authorityAt(recordFields(old), AUTHORITY_MS * 0.9);
    const fresh = await authorityAt(recordFields(announced), AUTHORITY_MS + HOUR_MS);
    expect(fresh.current).toEqual(announced.next?.pair);
  });
});

describe('renewedCertificate', () => {
  it('takes another where the names are others, the authority is another, or the key is not its own', async () => {
    const record = await authorityAt({}, 0);
    const leaf = await leafAt({}, record, 0);
    const other = await authorityAt({}, 0);
    const changed = [
      await leafAt(leaf, record, 0, ['another-agent']),
      await leafAt(leaf, record, 0, [...NAMES, 'one-more']),
      await leafAt(leaf, other, 0),
      await leafAt({ ...leaf, 'tls.key': other.current.key }, record, 0),
      await leafAt({}, record, 0),
    ];
    for (const each of changed) expect(each['tls.crt']).not.toBe(leaf['tls.crt']);
  });

  it('keeps a certificate that ends with its authority: a new one would live no longer', async () => {
    const record = await authorityAt({}, 0);
    const late = AUTHORITY_MS - LEAF_MS / 10;
    const leaf = await leafAt({}, record, late);
    expect(await leafAt(leaf, record, late + HOUR_MS)).toEqual(leaf);
  });

  it('keeps a certificate when only more is trusted', async () => {
    const record = await authorityAt({}, 0);
    const leaf = await leafAt({}, record, 0);
    const trusted = `${record.trusted}${(await authorityAt({}, 0)).trusted}`;
    expect(await leafAt(leaf, { ...record, trusted }, 0)).toEqual({ ...leaf, 'ca.crt': trusted });
  });
});
