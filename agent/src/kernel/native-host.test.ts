import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';

import { afterAll, describe, expect, test } from 'vitest';

import { loadNative } from './native.ts';
import { isCgroup2 } from './node-facts.ts';
import { mountBpfFs, thrownBy } from './native-test-objects.ts';

const native = loadNative();
const directory = mkdtempSync(join(tmpdir(), 'enforcer-host-'));
afterAll(() => rmSync(directory, { recursive: true }));

const cgroup2 = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find((path) => {
  try {
    return isCgroup2(native.filesystemType(path).magic);
  } catch {
    return false;
  }
});

describe('cgroupId', () => {
  test('is the inode number of the directory, and each directory has its own', () => {
    if (cgroup2 === undefined)
      throw new Error('no cgroup v2 tree at /sys/fs/cgroup: mount -t cgroup2 none /sys/fs/cgroup');
    const paths = [1, 2].map((number) => join(cgroup2, `enforcer-test-${process.pid}-${number}`));
    for (const path of paths) mkdirSync(path);
    const ids = paths.map((path) => native.cgroupId(path));
    const inodes = paths.map((path) => statSync(path, { bigint: true }).ino);
    for (const path of paths) rmdirSync(path);
    expect(ids).toEqual(inodes);
    expect(ids[0]).not.toBe(ids[1]);
  });

  test('of what is no cgroup is refused', () => {
    expect(thrownBy(() => native.cgroupId('/nowhere'))).toMatchObject({
      code: 'ENOENT',
      operation: 'cgroupId',
    });
    expect(() => native.cgroupId(directory)).toThrow(
      `cgroupId ${directory}: it is not in a cgroup file system (EINVAL)`,
    );
    expect(() => native.cgroupId('/sys/fs/cgroup\0')).toThrow(TypeError);
  });
});

describe('file systems', () => {
  test('are known by their magic, and mount points by their attribute', () => {
    const bpfFs = mountBpfFs();
    try {
      expect(native.filesystemType(bpfFs.path)).toEqual({ magic: 0xcafe4a11 });
      expect(native.isMountPoint(bpfFs.path)).toBe(true);
    } finally {
      bpfFs.remove();
    }
    expect(native.isMountPoint(directory)).toBe(false);
    expect(thrownBy(() => native.isMountPoint('/nowhere'))).toMatchObject({ code: 'ENOENT' });
    expect(thrownBy(() => native.filesystemType('/nowhere'))).toMatchObject({ code: 'ENOENT' });
  });
});

describe('tryLock', () => {
  const path = join(directory, 'lock');

  test('has one holder, until it is released', () => {
    const lock = native.tryLock(path);
    expect(native.tryLock(path)).toBeUndefined();
    lock?.release();
    lock?.release();
    const again = native.tryLock(path);
    expect(again).toBeDefined();
    again?.release();
  });

  test('excludes other processes, and is not handed down to children', () => {
    const lock = native.tryLock(path);
    const flock = (): number => {
      try {
        execFileSync('flock', ['--nonblock', path, 'true']);
        return 0;
      } catch (error) {
        return (error as { status: number }).status;
      }
    };
    expect(flock()).toBe(1);
    lock?.release();
    expect(flock()).toBe(0);
  });

  test('refuses what cannot be locked', () => {
    expect(thrownBy(() => native.tryLock('/nowhere/lock'))).toMatchObject({
      code: 'ENOENT',
      operation: 'tryLock',
    });
    symlinkSync('/etc/passwd', join(directory, 'symlink'));
    expect(thrownBy(() => native.tryLock(join(directory, 'symlink')))).toMatchObject({ code: 'ELOOP' });
  });
});

describe('the kernel', () => {
  test('has at least the CPUs that are online', () => {
    expect(native.possibleCpus()).toBeGreaterThanOrEqual(cpus().length);
  });

  test('has functions that exist and none that do not', () => {
    expect(native.hasKernelBtf()).toBe(true);
    expect(native.kernelHasFunction('security_bprm_creds_for_exec')).toBe(true);
    expect(native.kernelHasFunction('no_function_of_that_name')).toBe(false);
    expect(native.kernelHasFunction('task_struct')).toBe(false);
  });

  test('tells when all readers have ended, off the loop', async () => {
    const started = performance.now();
    let turns = 0;
    const counting = setInterval(() => turns++, 1);
    for (let round = 0; round < 5; round++) await native.waitForReaders();
    clearInterval(counting);
    expect(turns).toBeGreaterThan(0);
    expect(performance.now() - started).toBeLessThan(9000);
  });
});
