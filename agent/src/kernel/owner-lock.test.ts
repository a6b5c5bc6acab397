import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadNative } from './native.ts';
import { acquireOwnership, OwnerBusyError } from './owner-lock.ts';

const native = loadNative();

describe('ownership of a node', () => {
  let directory: string;
  let path: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'enforcer-owner-'));
    path = join(directory, 'made', 'owner.lock');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('is one agent at a time, and names it', async () => {
    const first = await acquireOwnership(native, path);
    expect(first.epoch).toBe(1);
    await expect(acquireOwnership(native, path)).rejects.toThrow(OwnerBusyError);
    await expect(acquireOwnership(native, path)).rejects.toThrow(`pid ${process.pid}`);
    first.release();
    const second = await acquireOwnership(native, path);
    expect(second.epoch).toBe(2);
    second.release();
  });

  it('passes over when the owner ends', async () => {
    const first = await acquireOwnership(native, path);
    const sentences: string[] = [];
    const waiting = acquireOwnership(native, path, {
      signal: AbortSignal.timeout(10_000),
      onWait: (sentence) => sentences.push(sentence),
    });
    await expect.poll(() => sentences).toHaveLength(1);
    first.release();
    expect((await waiting).epoch).toBe(2);
  });

  it('passes over when the owner is killed', async () => {
    const script = `
      import { loadNative } from '${import.meta.dirname}/native.ts';
      import { acquireOwnership } from '${import.meta.dirname}/owner-lock.ts';
      await acquireOwnership(loadNative(), ${JSON.stringify(path)});
      console.log('owner');
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    await expect(acquireOwnership(native, path)).rejects.toThrow(`pid ${child.pid ?? 0}`);
    child.kill('SIGKILL');
    const next = await acquireOwnership(native, path, {
      signal: AbortSignal.timeout(10_000),
      onWait: () => undefined,
    });
    expect(next.epoch).toBe(2);
    next.release();
  });

  it('stops waiting when it is told to', async () => {
    const first = await acquireOwnership(native, path);
    const waiting = acquireOwnership(native, path, {
      signal: AbortSignal.timeout(50),
      onWait: () => undefined,
    });
    await expect(waiting).rejects.toThrow();
    first.release();
  });

  it.each(['', '{', '[]', '{"pid":"x"}', '\0'])(
    'is not disturbed by a lock file that holds %j',
    async (text) => {
      const first = await acquireOwnership(native, path);
      first.release();
      writeFileSync(path, text);
      const second = await acquireOwnership(native, path);
      expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ pid: process.pid, epoch: 1 });
      second.release();
    },
  );
});
