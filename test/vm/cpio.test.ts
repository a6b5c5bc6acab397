import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CpioEntry, cpioArchive } from './cpio.ts';

describe('cpioArchive', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'cpio-test-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const unpack = (archive: Buffer): void => {
    execFileSync('busybox', ['cpio', '-idm'], {
      cwd: directory,
      input: archive,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  };

  it('is unpacked by cpio with the same names, modes, bytes and links', () => {
    const bytes = Buffer.from([0, 255, 10, 13, 0]);
    unpack(
      cpioArchive([
        { kind: 'file', path: '/bin/tool', mode: 0o755, content: bytes },
        { kind: 'file', path: 'etc/ünï name', mode: 0o600, content: Buffer.alloc(0) },
        { kind: 'directory', path: 'private', mode: 0o700 },
        { kind: 'link', path: 'bin/link', target: 'tool' },
      ]),
    );
    expect(readFileSync(join(directory, 'bin/tool'))).toEqual(bytes);
    expect(lstatSync(join(directory, 'bin/tool')).mode & 0o7777).toBe(0o755);
    expect(lstatSync(join(directory, 'bin')).mode & 0o7777).toBe(0o755);
    expect(lstatSync(join(directory, 'etc/ünï name')).mode & 0o7777).toBe(0o600);
    expect(lstatSync(join(directory, 'private')).mode & 0o7777).toBe(0o700);
    expect(readlinkSync(join(directory, 'bin/link'))).toBe('tool');
  });

  it('can stand behind another archive: it fills whole blocks', () => {
    const name = fc.stringMatching(/^[a-z]{1,40}$/);
    fc.assert(
      fc.property(name, fc.uint8Array({ maxLength: 1_000 }), (path, content) => {
        expect(cpioArchive([{ kind: 'file', path, mode: 0o644, content }]).length % 512).toBe(0);
      }),
    );
  });

  it('gives equal bytes for equal entries, and keeps the last of two with the same path', () => {
    const entry = (text: string): CpioEntry => ({
      kind: 'file',
      path: 'a/b',
      mode: 0o644,
      content: Buffer.from(text),
    });
    expect(cpioArchive([entry('one'), entry('two')])).toEqual(cpioArchive([entry('two')]));
    expect(cpioArchive([entry('one')])).not.toEqual(cpioArchive([entry('two')]));
  });

  it('starts with the header that the kernel documents', () => {
    const archive = cpioArchive([{ kind: 'file', path: 'f', mode: 0o644, content: Buffer.from('xyz') }]);
    expect(archive.subarray(0, 112).toString()).toBe(
      '070701' + // magic
        '00000001' + // inode
        '000081a4' + // regular file, 0644
        '0000000000000000' + // root, root
        '00000001' + // links
        '00000000' + // time
        '00000003' + // size
        '00000000000000000000000000000000' + // devices
        '00000002' + // length of the name with its NUL
        '00000000' + // checksum, unused
        'f\0',
    );
  });

  it.each(['', '/', 'a//b', 'a/', './a', 'a/../b', 'a\0b'])('refuses the path %j', (path) => {
    expect(() => cpioArchive([{ kind: 'directory', path, mode: 0o755 }])).toThrow(RangeError);
  });
});
