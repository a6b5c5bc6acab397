import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { release } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { displayExecutable, executablePathFromBytes } from '@runtime-enforcer/api/executable-path';
import { decide } from '@runtime-enforcer/api/matcher';
import { enforce, makePlace, policyOf, type Place } from './bound-place.ts';
import { ALLOWED_KEY_BYTES, LIST_ID_BYTES } from '@runtime-enforcer/agent/kernel/gen/abi';
import { drawFrom, pick, type Draw } from './draw.ts';
import { openKernel, type Kernel } from './kernel.ts';

/** Over all kernels of the ring more than 10,000 paths; the release is the seed, so each kernel has others. */
const LISTS = 3;
const PATHS_PER_LIST = 1_000;
const SOURCE = '/usr/bin/allowed';
const NAME_MAX = 255;
const SLASH = 0x2f;
/** Letters that make prefixes of each other likely; now and then any byte that a name may hold. */
const LETTERS = [0x61, 0x62, 0x63];
const ANY_BYTE_EVERY = 6;
const EDGE_EVERY = 10;
/** Lengths at which a path changes tables. */
const EDGES = ALLOWED_KEY_BYTES.map((bytes) => Math.min(bytes - LIST_ID_BYTES, 4_095));

function randomName(draw: Draw): Buffer {
  const bytes = Array.from({ length: 1 + draw(12) }, () => {
    const byte = draw(ANY_BYTE_EVERY) === 0 ? 1 + draw(255) : pick(draw, LETTERS);
    return byte === SLASH ? 0x20 : byte;
  });
  const name = Buffer.from(bytes);
  return ['.', '..'].includes(name.toString('latin1')) ? Buffer.from('..a') : name;
}

/** A path below a directory of this list, so that lists do not meet each other's files. */
function randomPath(draw: Draw, root: Buffer): Buffer {
  if (draw(EDGE_EVERY) === 0) return filledPath(root, pick(draw, EDGES) + draw(5) - 2, 0x61 + draw(6));
  const names = Array.from({ length: 1 + draw(5) }, () => randomName(draw));
  return Buffer.concat([root, ...names.flatMap((name) => [Buffer.of(SLASH), name])]);
}

/** A path of so many bytes of one letter, in directories of the longest names. */
function filledPath(root: Buffer, bytes: number, letter: number): Buffer {
  const path = Buffer.alloc(Math.min(Math.max(bytes, root.length + 2), 4_095), letter);
  root.copy(path);
  for (let at = root.length; at < path.length - 1; at += NAME_MAX + 1) path[at] = SLASH;
  return path;
}

/** Whether the path could be made: a file is no directory of another one. */
function isFree(path: Buffer, files: ReadonlySet<string>, directories: ReadonlySet<string>): boolean {
  if (directories.has(path.toString('latin1'))) return false;
  return ancestors(path).every((each) => !files.has(each));
}

function ancestors(path: Buffer): string[] {
  const parts = path.toString('latin1').split('/');
  return parts.slice(2).map((_, index) => parts.slice(0, index + 2).join('/'));
}

describe('field 51: the matcher of api/ and the kernel', () => {
  let kernel: Kernel;
  let place: Place;

  before(async () => {
    kernel = await openKernel();
    place = await makePlace(kernel, 'agreement');
  });
  after(async () => {
    await place.close();
    await kernel.stop();
  });

  for (let list = 0; list < LISTS; list++) {
    it(`give one answer for ${PATHS_PER_LIST} random paths and list ${list + 1} of ${LISTS}`, async () => {
      const longest = kernel.enforcer.attachment.pathBytesMax;
      const paths = makeablePaths(list);
      const made = await place.askAll(paths.map((path) => ['+', SOURCE, path]));
      deepStrictEqual([...new Set(made)], ['made']);
      // Every third file, and as many paths that nobody made.
      const listed = paths
        .flatMap((path, index) =>
          index % 3 === 0 ? [path] : index % 3 === 1 ? [Buffer.concat([path, Buffer.of(0x61)])] : [],
        )
        .flatMap((path) => {
          const parsed = executablePathFromBytes(path);
          return parsed.ok && path.length <= longest ? [parsed.value] : [];
        });
      const policy = policyOf(`agreement-${list}`, 'protect', listed);
      const bound = await enforce(kernel, place, policy);
      const verdicts = await place.askAll(paths.map((path) => [path]));
      await bound.unbind();
      const answers = paths.map((path) => {
        const attempt = { container: 'app', path, kind: 'file', mountNamespace: 'own' } as const;
        return decide(policy.spec, attempt, longest).outcome === 'allowed' ? 'ran' : 'EPERM';
      });
      const different = paths.flatMap((path, index) =>
        verdicts[index] === answers[index]
          ? []
          : [`${displayExecutable(path, 'file')}: ${verdicts[index] ?? ''}`],
      );
      deepStrictEqual(different, []);
      strictEqual(new Set(answers).size, 2);
    });
  }

  function makeablePaths(list: number): Buffer[] {
    const draw = drawFrom(`${release()} ${list}`);
    const root = Buffer.from(`/tmp/l${list}`);
    const files = new Set<string>();
    const directories = new Set<string>();
    const paths: Buffer[] = [];
    while (paths.length < PATHS_PER_LIST) {
      const path = randomPath(draw, root);
      const text = path.toString('latin1');
      if (files.has(text) || !isFree(path, files, directories)) continue;
      files.add(text);
      for (const each of ancestors(path)) directories.add(each);
      paths.push(path);
    }
    return paths;
  }
});
