import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createGracePeriod } from '../kernel/grace-period.ts';
import { openExampleMaps } from '../kernel/kernel-maps-example.ts';
import { loadNative } from '../kernel/native.ts';
import { createAllowLists, type AllowLists } from './allow-list.ts';
import { createAllowedTables, TableFullError } from './allowed-tables.ts';
import { createPathInterner, type PathInterner } from './path-interner.ts';
import { entryCount, examplePath, isListed } from './policy-example.ts';

const native = loadNative();
const paths = (...texts: string[]) => texts.map(examplePath);

describe('allow lists', () => {
  let opened: ReturnType<typeof openExampleMaps>;
  let interner: PathInterner;
  let lists: AllowLists;

  beforeEach(() => {
    opened = openExampleMaps(native, { capacity: 64 });
    interner = createPathInterner();
    lists = createAllowLists(
      createAllowedTables(opened.maps.allowed, interner),
      interner,
      createGracePeriod(native),
    );
  });
  afterEach(() => opened.close());

  it('are one list for equal paths, whatever their order and number', async () => {
    const one = lists.take(paths('/b', '/a'));
    const two = lists.take(paths('/a', '/b', '/a'));
    expect(two).toBe(one);
    expect(lists.take(paths('/a')).digest).not.toBe(one.digest);
    await lists.load(one);
    await Promise.all([lists.load(two), lists.load(one)]);
    expect(await entryCount(opened.maps)).toBe(2);
  });

  it('leave the kernel and the memory with their last use', async () => {
    const list = lists.take(paths('/a', '/b'));
    lists.share(list);
    await lists.load(list);
    const { id } = list;
    await lists.release(list);
    expect(isListed(opened.maps, id, Buffer.from('/a'))).toBe(true);
    await lists.release(list);
    expect(await entryCount(opened.maps)).toBe(0);
    expect(interner.size).toBe(0);
  });

  it('that are loaded while they are given back leave too', async () => {
    const list = lists.take(paths('/a'));
    const loading = lists.load(list);
    const releasing = lists.release(list);
    await Promise.all([loading, releasing]);
    expect(await entryCount(opened.maps)).toBe(0);
  });

  it('never get a number that is in use or that was just given up', async () => {
    const adopted = lists.adopt(7, paths('/adopted'));
    lists.reserveIds(9);
    expect(adopted.id).toBe(7);
    const ids = new Set<number>([7]);
    for (let i = 0; i < 20; i++) {
      const list = lists.take(paths(`/${i}`));
      await lists.load(list);
      expect(list.id).toBeGreaterThan(9);
      expect(ids.has(list.id)).toBe(false);
      ids.add(list.id);
      await lists.release(list);
    }
  });

  it('that do not fit leave nothing, and keep no other out', async () => {
    const fits = lists.take(paths('/fits'));
    const large = lists.take(paths(...Array.from({ length: 65 }, (_, i) => `/large/${i}`)));
    const results = await Promise.allSettled([lists.load(large), lists.load(fits)]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    await expect(lists.load(large)).rejects.toThrow(TableFullError);
    await expect(lists.load(large)).rejects.toThrow('paths of up to 28 bytes is full (it holds 64)');
    expect(await entryCount(opened.maps)).toBe(1);
    expect(isListed(opened.maps, fits.id, Buffer.from('/fits'))).toBe(true);
  });

  it('that fit are never kept out by one that is tried at the same time and does not', async () => {
    for (let round = 0; round < 20; round++) {
      const large = lists.take(paths(...Array.from({ length: 65 }, (_, i) => `/large/${i}`)));
      const small = Array.from({ length: 60 }, (_, i) => lists.take(paths(`/small/${round}/${i}`)));
      const tooLarge = lists.load(large).catch((error: unknown) => error);
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(small.map((list) => lists.load(list)));
      expect(await tooLarge).toBeInstanceOf(TableFullError);
      await Promise.all([...small, large].map((list) => lists.release(list)));
      expect(await entryCount(opened.maps)).toBe(0);
    }
  });

  it('answer as a set does, for any paths', async () => {
    const text = fc
      .array(fc.stringMatching(/^[a-z0-9]{1,40}$/), { minLength: 1, maxLength: 6 })
      .map((components) => examplePath(`/${components.join('/')}`));
    await fc.assert(
      fc.asyncProperty(
        fc.array(text, { maxLength: 12 }),
        fc.array(text, { maxLength: 6 }),
        async (listed, others) => {
          const list = lists.take(listed);
          await lists.load(list);
          for (const path of [...listed, ...others]) {
            expect(isListed(opened.maps, list.id, Buffer.from(path))).toBe(listed.includes(path));
          }
          await lists.release(list);
          expect(await entryCount(opened.maps)).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('path interner', () => {
  it('keeps equal paths once, and gives a number away only when nobody uses it', () => {
    const interner = createPathInterner();
    const [a, b] = [interner.use(examplePath('/a')), interner.use(examplePath('/b'))];
    expect(interner.use(examplePath('/a'))).toBe(a);
    interner.release(a);
    expect(interner.use(examplePath('/c'))).not.toBe(a);
    interner.release(a);
    expect(interner.use(examplePath('/d'))).toBe(a);
    expect(interner.text(b)).toBe('/b');
    expect(interner.size).toBe(3);
  });

  it('writes the bytes that the kernel compares', () => {
    const interner = createPathInterner();
    const number = interner.use(examplePath(String.raw`/ü\xff\\`));
    const into = Buffer.alloc(10, 0x2e);
    interner.write(number, into, 2);
    expect(interner.byteLength(number)).toBe(5);
    expect(into).toEqual(Buffer.from([0x2e, 0x2e, 0x2f, 0xc3, 0xbc, 0xff, 0x5c, 0x2e, 0x2e, 0x2e]));
  });
});
