import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAuthority, issueCertificate } from './authority.ts';
import { certificateStore, type CertificateStore } from './certificate-store.ts';

const HOUR_MS = 3_600_000;
const made = new Date();
const authority = await createAuthority({ commonName: 'ca', now: made, validForMs: 4 * HOUR_MS });

let directory: string;
let store: CertificateStore;
let nowMs: number;
let refused: string[];
async function write(commonName: string, fromMs: number): Promise<string> {
  const { certificate, key } = await issueCertificate(authority, {
    ...{ commonName, usages: ['server'], now: new Date(fromMs), validForMs: HOUR_MS },
  });
  await writeFile(join(directory, 'tls.crt'), certificate);
  await writeFile(join(directory, 'tls.key'), key);
  await writeFile(join(directory, 'ca.crt'), authority.certificate);
  return certificate;
}
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'certificate-clock-'));
  [nowMs, refused] = [made.getTime(), []];
  store = certificateStore({
    ...{ directory, pollMs: HOUR_MS, now: () => new Date(nowMs) },
    onRefused: (error) => refused.push((error as Error).message),
  });
});
afterEach(async () => {
  store.stop();
  await rm(directory, { recursive: true });
});

it('tells once that the pair in use has ended, and takes the next one', async () => {
  const first = await write('first', nowMs);
  await store.start();
  nowMs += HOUR_MS + 60_000;
  for (let look = 0; look < 3; look++) expect(await store.reload()).toBe(false);
  expect(refused).toEqual([
    expect.stringMatching(/tls\.crt: the certificate ended at .*renew the certificate/),
  ]);
  expect(store.current().certificate).toBe(first);
  const second = await write('second', nowMs);
  expect(await store.reload()).toBe(true);
  expect(store.current().certificate).toBe(second);
});

it('keeps its pair through a clock that is set back before it and right again', async () => {
  const first = await write('first', nowMs);
  await store.start();
  nowMs -= 30 * 86_400_000;
  expect(await store.reload()).toBe(false);
  expect(refused).toEqual([expect.stringMatching(/begins at .*set this node's clock/)]);
  expect(store.current().certificate).toBe(first);
  nowMs = made.getTime() + 1_000;
  expect(await store.reload()).toBe(false);
  const second = await write('second', nowMs);
  expect(await store.reload()).toBe(true);
  expect(store.current().certificate).toBe(second);
  expect(refused).toHaveLength(1);
});
