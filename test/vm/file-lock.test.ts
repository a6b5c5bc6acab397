import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withFileLock } from './file-lock.ts';

const silent = (): void => undefined;

describe('withFileLock', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'lock-test-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('lets one in at a time, and the next one after an error', async () => {
    const path = join(directory, 'sub/lock');
    const inside: string[] = [];
    const enter = async (name: string): Promise<void> =>
      await withFileLock(
        path,
        async () => {
          inside.push(`${name} in`);
          await new Promise((resolve) => setTimeout(resolve, 30));
          inside.push(`${name} out`);
          if (name === 'a') throw new Error('a fails');
        },
        silent,
      );
    const ends = await Promise.allSettled([enter('a'), enter('b'), enter('c')]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    for (let index = 0; index < inside.length; index += 2) {
      expect(inside[index + 1]).toBe(inside[index]?.replace(' in', ' out'));
    }
    expect(inside).toHaveLength(6);
  });

  it('tells somebody who waits longer than a second', async () => {
    const path = join(directory, 'lock');
    const isHeld = Promise.withResolvers<undefined>();
    const isTold = Promise.withResolvers<undefined>();
    const hold = withFileLock(
      path,
      async () => {
        isHeld.resolve(undefined);
        await isTold.promise;
      },
      silent,
    );
    await isHeld.promise;
    let entered = false;
    const wait = withFileLock(
      path,
      async () => {
        entered = true;
        await Promise.resolve();
      },
      () => {
        expect(entered).toBe(false);
        isTold.resolve(undefined);
      },
    );
    await Promise.all([hold, wait]);
    expect(entered).toBe(true);
  });
});
