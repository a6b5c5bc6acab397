import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCertificateDirectory } from '@runtime-enforcer/certs/certificate-directory';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeVolume } from './certificate-volume.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'runtime-enforcer-volume-'));
});
afterEach(async () => await rm(directory, { recursive: true }));

const version = (text: string) => ({ 'tls.crt': text, 'tls.key': text, 'ca.crt': text });

it('never lets a reader see files of two versions', async () => {
  await writeVolume(directory, version('0'));
  const done = new AbortController();
  const reads = (async () => {
    let count = 0;
    while (!done.signal.aborted) {
      const files = await readCertificateDirectory(directory);
      expect(new Set(Object.values(files)).size).toBe(1);
      count++;
    }
    return count;
  })();
  for (let index = 1; index <= 50; index++) await writeVolume(directory, version(String(index)));
  done.abort();
  expect(await reads).toBeGreaterThan(5);
});

it('serves who reads a file by its own name, and keeps no more than two versions', async () => {
  for (const text of ['a', 'b', 'c', 'd']) {
    await writeVolume(directory, version(text));
    expect(await readFile(join(directory, 'tls.crt'), 'utf8')).toBe(text);
  }
  const names = await readdir(directory);
  expect(names.filter((name) => name.startsWith('..version-')).length).toBeLessThanOrEqual(2);
  expect(names.filter((name) => !name.startsWith('..')).sort()).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
});
