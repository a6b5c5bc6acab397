import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { displayExecutable } from '@runtime-enforcer/api/executable-path';
import { enforce, makePlace, policyOf, type Place } from './bound-place.ts';
import { openKernel, type Kernel } from './kernel.ts';

/** Around the words by which names are read, the kernel's inline names, and the longest there is. */
const NAME_BYTES = [1, 2, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 39, 40, 41, 254, 255];
const SOURCE = '/usr/bin/allowed';
const DIRECTORY = '/tmp/names';

/** A name of so many bytes, of which no two neighbours are alike, so that no shift of it is equal. */
function nameOf(bytes: number, first: number): Buffer {
  return Buffer.from(Array.from({ length: bytes }, (_, at) => 0x61 + ((first + at * 7) % 26)));
}

function join(...names: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from(DIRECTORY), ...names.flatMap((name) => [Buffer.from('/'), name])]);
}

/** The path with one byte, counted from its end, changed into another letter. */
function changed(path: Buffer, fromEnd: number): Buffer {
  const copy = Buffer.from(path);
  const at = copy.length - 1 - fromEnd;
  copy[at] = copy[at] === 0x7a ? 0x79 : 0x7a;
  return copy;
}

describe('names of executables', () => {
  let kernel: Kernel;
  let place: Place;

  before(async () => {
    kernel = await openKernel();
    place = await makePlace(kernel, 'names');
  });
  after(async () => {
    await place.close();
    await kernel.stop();
  });

  /** Lists some paths, makes them and further ones, and tells what becomes of both. */
  async function tried(
    listed: readonly Buffer[],
    others: readonly Buffer[],
  ): Promise<{ listed: string[]; others: string[] }> {
    const made = await place.askAll([...listed, ...others].map((path) => ['+', SOURCE, path]));
    deepStrictEqual([...new Set(made)], ['made']);
    const allowed = listed.map((path) => displayExecutable(path, 'file'));
    const bound = await enforce(kernel, place, policyOf('names', 'protect', allowed));
    try {
      return {
        listed: await place.askAll(listed.map((path) => [path])),
        others: await place.askAll(others.map((path) => [path])),
      };
    } finally {
      await bound.unbind();
    }
  }

  it('of every length that is read differently, before and after every other, are held to the byte', async () => {
    const pairs = NAME_BYTES.flatMap((directory) => NAME_BYTES.map((file) => [directory, file] as const));
    const listed = pairs
      .map(([directory, file]) => join(nameOf(directory, file), nameOf(file, directory)))
      .filter(({ length }) => length <= kernel.enforcer.attachment.pathBytesMax);
    // The last byte of the file, its first, and the last of the directory.
    const others = pairs
      .filter(
        ([directory, file]) =>
          DIRECTORY.length + directory + file + 2 <= kernel.enforcer.attachment.pathBytesMax,
      )
      .flatMap(([directory, file]) => {
        const path = join(nameOf(directory, file), nameOf(file, directory));
        return [changed(path, 0), changed(path, file - 1), changed(path, file + 1)];
      });
    const known = new Set(listed.map((path) => path.toString('latin1')));
    const unknown = new Map(others.map((path) => [path.toString('latin1'), path]));
    for (const path of known) unknown.delete(path);
    const verdicts = await tried(listed, [...unknown.values()]);
    deepStrictEqual(wrong(listed, verdicts.listed, 'ran'), []);
    deepStrictEqual(wrong([...unknown.values()], verdicts.others, 'EPERM'), []);
  });

  it('of each length at every position of a deep path are held to the byte', async () => {
    const depth = 6;
    const paths = [8, 9, 16, 17, 255].flatMap((bytes) =>
      Array.from({ length: depth }, (_, position) =>
        join(
          ...Array.from({ length: depth }, (_unused, at) => nameOf(at === position ? bytes : 3, bytes + at)),
        ),
      ),
    );
    const verdicts = await tried(
      paths,
      paths.map((path) => changed(path, 0)),
    );
    deepStrictEqual(wrong(paths, verdicts.listed, 'ran'), []);
    strictEqual(new Set(verdicts.others).size, 1);
    strictEqual(verdicts.others[0], 'EPERM');
  });

  it('field 20: that are not UTF-8 are held to the byte, and recorded as they are', async () => {
    const names = [
      [0xff],
      [0xc3, 0x28],
      [0xed, 0xa0, 0x80],
      [0x0a],
      [0x01, 0x7f],
      [0xf4, 0x90, 0x80, 0x80],
      [0x5c],
    ];
    const listed = names.map((bytes) => join(Buffer.from('bytes'), Buffer.from(bytes)));
    const others = names.map((bytes) => join(Buffer.from('bytes'), Buffer.from([...bytes, 0xfe])));
    const verdicts = await tried(listed, others);
    deepStrictEqual(wrong(listed, verdicts.listed, 'ran'), []);
    deepStrictEqual(wrong(others, verdicts.others, 'EPERM'), []);
    for (const path of others) await kernel.event({ text: path.toString('latin1') });
  });

  it('that look like what can never be listed are files like any other, and denied', async () => {
    const others = ['/tmp/tool (deleted)', '/memfd:tool', '/tmp/ (deleted)', '/tmp/...', '/tmp/..a'];
    const verdicts = await tried(
      [Buffer.from('/tmp/tool')],
      others.map((path) => Buffer.from(path)),
    );
    deepStrictEqual(verdicts, { listed: ['ran'], others: others.map(() => 'EPERM') });
  });

  it('field 1: more than 20 directories deep are whole, and field 3: more than 256 bytes long', async () => {
    const deep = Buffer.from(`${'/d'.repeat(21)}/shell`);
    const long = Buffer.from(`/${'l'.repeat(150)}/${'m'.repeat(149)}`);
    const verdicts = await tried(
      [deep, long],
      [changed(deep, deep.length - 2), changed(long, long.length - 2)],
    );
    deepStrictEqual(verdicts, { listed: ['ran', 'ran'], others: ['EPERM', 'EPERM'] });
    await kernel.event({ text: changed(deep, deep.length - 2).toString() });
  });
});

/** The paths whose verdict is another one. */
function wrong(paths: readonly Buffer[], verdicts: readonly string[], expected: string): string[] {
  return paths.flatMap((path, index) =>
    verdicts[index] === expected ? [] : [`${verdicts[index] ?? 'none'}: ${displayExecutable(path, 'file')}`],
  );
}
