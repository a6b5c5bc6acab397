import { deepStrictEqual, ok } from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { bindPlace, makePlace, type Place } from './bound-place.ts';
import { openKernel, type Kernel } from './kernel.ts';
import { drawFrom, pick } from './draw.ts';

const ROUNDS = 3;
const STEPS = 40;
/** Files that were left empty are checked before the kernel finds that they are no program. */
const CHECKED = ['ran', 'ENOEXEC'];
const SOURCE = '/usr/bin/forbidden';

describe('paths in random trees of mounts', () => {
  let kernel: Kernel;

  before(async () => {
    kernel = await openKernel();
  });
  after(async () => await kernel.stop());

  for (let round = 1; round <= ROUNDS; round++) {
    it(`are recorded as the kernel itself names the files (tree ${round})`, async () => {
      const place = await makePlace(kernel, `mounts-${round}`);
      const slot = bindPlace(kernel, place, 0, true);
      try {
        const files = await growTree(place, round);
        const names = await place.askAll(files.map((file) => ['name', file]));
        const verdicts = await place.askAll(files.map((file) => [file]));
        const expected = new Set(names.filter((_, index) => CHECKED.includes(verdicts[index] ?? '')));
        ok(expected.size > STEPS / 4, `only ${expected.size} files`);
        for (const name of expected) await kernel.event({ text: name, kind: 'learned', slot: slot.slot });
        const recorded = kernel.events
          .filter((event) => event.slot === slot.slot && event.generation === slot.generation)
          .map(({ path }) => Buffer.from(path).toString('latin1'));
        deepStrictEqual([...new Set(recorded)].sort(), [...expected].sort());
      } finally {
        await kernel.slots.release(slot);
        await place.close();
      }
    });
  }
});

/** Makes directories, files, bind mounts of both and file systems on top of each other; returns paths of files. */
async function growTree(place: Place, round: number): Promise<string[]> {
  const draw = drawFrom(`tree ${round}`);
  const directories = ['/tmp', '/mnt', '/usr'];
  const files: string[] = [SOURCE];
  for (let step = 0; step < STEPS; step++) {
    const target = `${pick(draw, directories)}/${pick(draw, ['d', 'volume', 'a-longer-name-of-a-directory'])}-${step}`;
    switch (draw(6)) {
      case 0:
        await place.askAll([['bind', pick(draw, directories), target]]);
        directories.push(target);
        break;
      case 1:
        await place.askAll([['bind', pick(draw, files), target]]);
        files.push(target);
        break;
      case 2:
        // Sometimes over a mount that is there, whose files are hidden then.
        await place.askAll([
          ['tmpfs', draw(3) === 0 ? pick(draw, directories.slice(3).concat(target)) : target],
        ]);
        directories.push(target);
        break;
      default:
        await place.askAll([['+', SOURCE, target]]);
        files.push(target);
    }
  }
  const seen = directories.flatMap((directory) =>
    files.map((file) => `${directory}/${file.slice(file.lastIndexOf('/') + 1)}`),
  );
  const all = [...new Set([...files, ...seen])];
  const there = await place.askAll(all.map((file) => ['name', file]));
  return all.filter((_, index) => there[index]?.startsWith('/') === true);
}
