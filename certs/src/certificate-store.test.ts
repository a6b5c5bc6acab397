import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type CertifiedKey, createAuthority, issueCertificate } from './authority.ts';
import { type CertificateStoreOptions, certificateStore } from './certificate-store.ts';
import type { KeyPairFiles } from './key-pair.ts';
import { placeholderPair } from './placeholder-pair.ts';

const HOUR_MS = 3_600_000;
const now = new Date();
const authority = await createAuthority({ commonName: 'ca', now, validForMs: HOUR_MS });
const issue = async (commonName: string, validForMs = HOUR_MS, from = now): Promise<CertifiedKey> =>
  await issueCertificate(authority, { commonName, usages: ['server'], now: from, validForMs });
const files = (pair: CertifiedKey, changed: Partial<KeyPairFiles> = {}): KeyPairFiles => ({
  'tls.crt': pair.certificate,
  'tls.key': pair.key,
  'ca.crt': authority.certificate,
  ...changed,
});
const first = await issue('first');
const second = await issue('second');

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'certificate-store-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

let version = 0;
/** Replaces all files at once, the way kubelet does. */
async function swap(content: Partial<KeyPairFiles>): Promise<void> {
  const name = `..version-${++version}`;
  await mkdir(join(directory, name));
  for (const [file, text] of Object.entries(content)) await writeFile(join(directory, name, file), text);
  await symlink(name, join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
  for (const file of Object.keys(content)) {
    await symlink(join('..data', file), join(directory, file)).catch(() => undefined);
  }
}

function openStore(options: Partial<CertificateStoreOptions> = {}) {
  const refused: string[] = [];
  const onRefused = (error: unknown) => refused.push((error as Error).message);
  const store = certificateStore({ directory, onRefused, ...options });
  onTestFinished(() => store.stop());
  return { store, refused };
}

describe('certificateStore', () => {
  it('stands on a placeholder that nobody trusts until there is a pair, and says why', async () => {
    const { store, refused } = openStore({ placeholder: async () => await placeholderPair(now), pollMs: 20 });
    const pairs: string[] = [];
    store.onChange(({ certificate }) => pairs.push(certificate));
    await store.start();
    expect(store.current().authorities).not.toBe(authority.certificate);
    expect(refused).toEqual([expect.stringContaining('tls.crt')]);
    await swap(files(first));
    await vi.waitFor(() => expect(store.current().certificate).toBe(first.certificate));
    expect(pairs).toEqual([first.certificate]);
  });

  it('needs no placeholder where there is a pair', async () => {
    await swap(files(first));
    const placeholder = vi.fn(async () => await placeholderPair(now));
    const { store } = openStore({ placeholder });
    await store.start();
    expect([store.current().certificate, placeholder.mock.calls.length]).toEqual([first.certificate, 0]);
  });

  it('reads the pair and its end', async () => {
    await swap(files(first));
    const { store } = openStore();
    expect(() => store.current()).toThrow('not been started');
    await store.start();
    expect(store.current()).toMatchObject({ certificate: first.certificate, key: first.key });
    expect(store.current().notAfter.getTime()).toBeCloseTo(now.getTime() + HOUR_MS, -4);
  });

  it('reads plain files too', async () => {
    for (const [name, text] of Object.entries(files(first)))
      await writeFile(join(directory, name), text as string);
    const { store } = openStore();
    await store.start();
    expect(store.current().certificate).toBe(first.certificate);
  });

  it.each([
    ['by a notice of the file system', { pollMs: 3_600_000 }],
    ['by looking again, when no notice comes', { pollMs: 20 }],
  ])('follows an atomic swap %s', async (_, options) => {
    await swap(files(first));
    const { store, refused } = openStore(options);
    await store.start();
    const changes: string[] = [];
    store.onChange((pair) => changes.push(pair.certificate));
    await swap(files(second));
    await vi.waitFor(() => expect(changes).toEqual([second.certificate]), { timeout: 5_000 });
    expect(store.current().key).toBe(second.key);
    expect(refused).toEqual([]);
  });

  it.each<[string, () => Partial<KeyPairFiles> | Promise<Partial<KeyPairFiles>>, RegExp]>([
    [
      'a key of another certificate',
      () => files(second, { 'tls.key': first.key }),
      /tls\.key: the key is not that/,
    ],
    [
      'half a certificate',
      () => files(second, { 'tls.crt': second.certificate.slice(0, 300) }),
      /tls\.crt: .* no end/,
    ],
    [
      'half a key',
      () => files(second, { 'tls.key': second.key.slice(0, 100) }),
      /tls\.key: the key cannot be read/,
    ],
    ['an empty certificate', () => files(second, { 'tls.crt': '' }), /tls\.crt: there is no certificate/],
    ['an authority that is none', () => files(second, { 'ca.crt': 'x' }), /ca\.crt: there is no certificate/],
    [
      'a certificate that is noise',
      () => files(second, { 'tls.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }),
      /tls\.crt: certificate 1 in it cannot be read/,
    ],
    [
      'no key',
      () => ({ 'tls.crt': second.certificate, 'ca.crt': authority.certificate }),
      /tls\.key: cannot be read/,
    ],
    [
      'a file of 2 MiB',
      () => files(second, { 'ca.crt': 'x'.repeat(2 ** 21) }),
      /ca\.crt: the file has 2097152 bytes/,
    ],
    [
      'an ended certificate',
      async () => files(await issue('old', -1_000)),
      /tls\.crt: the certificate ended at/,
    ],
    [
      'a certificate of the future',
      async () => files(await issue('new', HOUR_MS, new Date(Date.now() + HOUR_MS / 2))),
      /tls\.crt: the certificate begins at/,
    ],
  ])('refuses %s, says so once, and keeps the last good pair', async (_, broken, message) => {
    await swap(files(first));
    const { store, refused } = openStore();
    await store.start();
    await swap(await broken());
    expect(await store.reload()).toBe(false);
    expect(await store.reload()).toBe(false);
    expect(refused).toEqual([expect.stringMatching(message)]);
    expect(refused.join()).not.toContain('BEGIN PRIVATE');
    expect(store.current().certificate).toBe(first.certificate);
    await swap(files(second));
    expect(await store.reload()).toBe(true);
    expect(store.current().certificate).toBe(second.certificate);
  });

  it('does not start without a usable pair', async () => {
    const { store } = openStore({ directory: join(directory, 'missing') });
    await expect(store.start()).rejects.toThrow(
      /missing\/tls\.crt: cannot be read .*mount the certificate there/,
    );
  });

  it('a listener that throws keeps no other from hearing', async () => {
    await swap(files(first));
    const { store, refused } = openStore();
    await store.start();
    const heard = vi.fn();
    store.onChange(() => {
      throw new Error('mine');
    });
    store.onChange(heard);
    await swap(files(second));
    await store.reload();
    await vi.waitFor(() => expect(heard).toHaveBeenCalledOnce());
    expect(refused).toEqual(['mine']);
  });

  it('never pairs the files of two versions', async () => {
    await swap(files(first));
    const { store, refused } = openStore({ pollMs: 1 });
    await store.start();
    for (let round = 0; round < 40; round++) {
      await swap(files(round % 2 === 0 ? second : first));
      await store.reload();
    }
    expect(refused).toEqual([]);
  });
});
