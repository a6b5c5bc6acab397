import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cacheDirectory, cachedAsset, contentKey, fileDigest } from './cache.ts';

const silent = (): void => undefined;

describe('the cache', () => {
  let home = '';
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'cache-test-'));
    vi.stubEnv('XDG_CACHE_HOME', home);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(home, { recursive: true });
  });

  const asset = (key: string, make: (directory: string) => Promise<void>) => ({
    kind: 'thing',
    key,
    title: 'a thing',
    make,
  });

  it('makes an asset once, also for two who ask at the same time', async () => {
    let made = 0;
    const make = async (directory: string): Promise<void> => {
      made++;
      await new Promise((resolve) => setTimeout(resolve, 50));
      writeFileSync(join(directory, 'content'), 'done');
    };
    const [one, two] = await Promise.all([
      cachedAsset(asset('ab12', make), silent),
      cachedAsset(asset('ab12', make), silent),
    ]);
    expect(made).toBe(1);
    expect(one).toBe(two);
    expect(readFileSync(join(one, 'content'), 'utf8')).toBe('done');
  });

  it('makes it again when its key changes', async () => {
    const make = vi.fn(async () => await Promise.resolve());
    await cachedAsset(asset('aa', make), silent);
    await cachedAsset(asset('bb', make), silent);
    await cachedAsset(asset('aa', make), silent);
    expect(make).toHaveBeenCalledTimes(2);
  });

  it('leaves nothing of one that failed, and makes it the next time', async () => {
    const fail = async (directory: string): Promise<void> => {
      writeFileSync(join(directory, 'half'), '');
      await Promise.reject(new Error('the mirror is away'));
    };
    await expect(cachedAsset(asset('cc', fail), silent)).rejects.toThrow('the mirror is away');
    expect(readdirSync(join(cacheDirectory(), 'unfinished'))).toEqual([]);
    const directory = await cachedAsset(
      asset('cc', async () => await Promise.resolve()),
      silent,
    );
    expect(readdirSync(directory)).toEqual([]);
  });

  it('keeps the three versions that were used last, and other kinds', async () => {
    const make = async (): Promise<void> => await Promise.resolve();
    const other = await cachedAsset({ ...asset('ff', make), kind: 'thing-else' }, silent);
    const paths: string[] = [];
    for (const key of ['01', '02', '03', '04', '05']) paths.push(await cachedAsset(asset(key, make), silent));
    expect(paths.map((path) => existsSync(path))).toEqual([false, false, true, true, true]);
    expect(existsSync(other)).toBe(true);
  });

  it('says what it makes and how long that took', async () => {
    const lines: string[] = [];
    await cachedAsset(
      asset('dd', async () => await Promise.resolve()),
      (line) => lines.push(line),
    );
    expect(lines[0]).toBe('making a thing');
    expect(lines[1]).toMatch(/^made a thing in \d+\.\d s$/);
  });
});

describe('contentKey', () => {
  it('tells apart what only joins to the same text', () => {
    expect(contentKey(['ab', 'c'])).not.toBe(contentKey(['a', 'bc']));
    expect(contentKey(['a', 'b'])).not.toBe(contentKey(['b', 'a']));
    expect(contentKey(['a', Buffer.from('b')])).toBe(contentKey(['a', 'b']));
  });
});

describe('fileDigest', () => {
  it('is the sha256 of the bytes', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'digest-test-'));
    writeFileSync(join(directory, 'f'), 'abc');
    const digest = await fileDigest(join(directory, 'f'));
    rmSync(directory, { recursive: true });
    expect(digest).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });
});
