import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { tarArchive, type TarEntry, withParents } from './tar.ts';

const LONG = `${'d'.repeat(120)}/${'f'.repeat(90)}`;
const ENTRIES: readonly TarEntry[] = [
  { kind: 'directory', path: 'bin', mode: 0o755 },
  { kind: 'file', path: 'bin/a', mode: 0o4755, content: Buffer.from('x'.repeat(513)) },
  { kind: 'hardlink', path: 'bin/b', target: 'bin/a' },
  { kind: 'symlink', path: 'bin/c', target: '/bin/a' },
  { kind: 'file', path: LONG, mode: 0o644, content: Buffer.alloc(0) },
];

function list(archive: Buffer): string[] {
  return execFileSync('tar', ['--numeric-owner', '--utc', '-tvf', '-'], { input: archive, encoding: 'utf8' })
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/ +/g, ' '));
}

it('is what the tar program reads, with root as owner and no times', () => {
  expect(list(tarArchive(ENTRIES))).toEqual([
    'drwxr-xr-x 0/0 0 1970-01-01 00:00 bin/',
    '-rwsr-xr-x 0/0 513 1970-01-01 00:00 bin/a',
    'hrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/b link to bin/a',
    'lrwxrwxrwx 0/0 0 1970-01-01 00:00 bin/c -> /bin/a',
    `-rw-r--r-- 0/0 0 1970-01-01 00:00 ${LONG}`,
  ]);
});

it('is the same for the same entries', () => {
  expect(tarArchive(ENTRIES).equals(tarArchive(ENTRIES))).toBe(true);
});

it('names an entry that the format cannot hold', () => {
  const long = 'x'.repeat(101);
  expect(() => tarArchive([{ kind: 'directory', path: long, mode: 0o755 }])).toThrow(`tar entry ${long}/`);
  expect(() => tarArchive([{ kind: 'symlink', path: 'link', target: long }])).toThrow('tar entry link');
});

it('puts each directory before what stands in it, once, and with the mode that it was given', () => {
  const content = Buffer.alloc(0);
  const entries: readonly TarEntry[] = [
    { kind: 'file', path: 'a/b/c', mode: 0o644, content },
    { kind: 'directory', path: 'tmp', mode: 0o1777 },
    { kind: 'file', path: 'a/b/d', mode: 0o644, content },
    { kind: 'file', path: 'tmp/e', mode: 0o644, content },
  ];
  const complete = withParents(entries);
  expect(complete.map(({ path }) => path)).toEqual(['a', 'a/b', 'a/b/c', 'tmp', 'a/b/d', 'tmp/e']);
  expect(complete[3]).toBe(entries[1]);
});
