import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runDirectory, runDirectoryOwner } from './run-directory.ts';

describe('runDirectory', () => {
  it('removes the directory of a process that is gone and no other', async () => {
    const { pid } = spawnSync('true');
    const stale = join(tmpdir(), `runtime-enforcer-guest-${pid}-Abc123`);
    const foreign = join(tmpdir(), 'runtime-enforcer-guest-notes');
    mkdirSync(stale);
    mkdirSync(foreign, { recursive: true });
    const first = await runDirectory();
    const second = await runDirectory();
    try {
      expect(existsSync(stale)).toBe(false);
      expect(existsSync(foreign)).toBe(true);
      expect(existsSync(first)).toBe(true);
      expect(first).not.toBe(second);
      expect(runDirectoryOwner(first.slice(tmpdir().length + 1))).toBe(process.pid);
    } finally {
      for (const path of [first, second, foreign]) rmSync(path, { recursive: true });
    }
  });

  it.each([
    'runtime-enforcer-guest-',
    'runtime-enforcer-guest-0-x',
    'runtime-enforcer-guest-1-',
    'other-1-x',
  ])('takes %s for somebody else’s', (name) => {
    expect(runDirectoryOwner(name)).toBeUndefined();
  });
});
