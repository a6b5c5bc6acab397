import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type UnpackedImage, unpackImage } from '../../images/testing/unpacked-image.ts';
import { buildTestImages } from './build.ts';
import { PAUSE_IMAGE, TOOLBOX_IMAGE } from './names.ts';
import { SCRIPT, SYMLINK } from './toolbox.ts';

const BUILD_BUDGET_MS = 60_000;

let cache: string;
let tars: Map<string, string>;
const previousCache = process.env['XDG_CACHE_HOME'];

beforeAll(async () => {
  cache = mkdtempSync(join(tmpdir(), 'test-images-'));
  process.env['XDG_CACHE_HOME'] = cache;
  tars = new Map((await buildTestImages(() => undefined)).map(({ ref, tarPath }) => [ref, tarPath]));
}, BUILD_BUDGET_MS);

afterAll(() => {
  if (previousCache === undefined) delete process.env['XDG_CACHE_HOME'];
  else process.env['XDG_CACHE_HOME'] = previousCache;
  rmSync(cache, { recursive: true, force: true });
});

const unpack = (ref: string): UnpackedImage => unpackImage(tars.get(ref) ?? '', cache);

it('builds a sandbox image that holds one program', () => {
  const { root, ref } = unpack(PAUSE_IMAGE);
  expect(ref).toBe(PAUSE_IMAGE);
  expect(statSync(join(root, 'pause')).mode & 0o111).toBe(0o111);
});

it('gives each tool of the toolbox a path of its own', () => {
  const { root, ref } = unpack(TOOLBOX_IMAGE);
  expect(ref).toBe(TOOLBOX_IMAGE);
  const resolve = (path: string): string =>
    execFileSync('chroot', [root, '/usr/bin/readlink', '-f', path], { encoding: 'utf8' }).trim();
  for (const path of ['/bin/sh', '/usr/bin/ls', '/usr/bin/cat', SCRIPT]) expect(resolve(path)).toBe(path);
  expect(resolve(SYMLINK)).toBe('/usr/bin/ls');
});

it('puts programs into the toolbox that run in it', () => {
  const { root } = unpack(TOOLBOX_IMAGE);
  const run = (...argv: string[]): string => execFileSync('chroot', [root, ...argv], { encoding: 'utf8' });
  expect(run('/opt/test/marker')).toBe('marker: ran\n');
  expect(run('/opt/test/attack', 'plain', '/opt/test/marker')).toBe('marker: ran\n');
  expect(run(SCRIPT)).toBe('greeted\n');
  expect(run('/bin/sh', '-c', '/usr/bin/ls -a /home')).toBe('.\n..\ntenant\n');
  expect(statSync(join(root, 'tmp')).mode & 0o7777).toBe(0o1777);
});

it('finds what it built before', async () => {
  const progress: string[] = [];
  const again = await buildTestImages((line) => progress.push(line));
  expect(new Map(again.map(({ ref, tarPath }) => [ref, tarPath]))).toEqual(tars);
  expect(progress).toEqual([]);
});
