import { createHash } from 'node:crypto';
import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { GracePeriod } from '../kernel/grace-period.ts';
import type { AllowedTables } from './allowed-tables.ts';
import type { PathInterner } from './path-interner.ts';

const LIST_ID_MAX = 0xffff_ffff;

/** The executables that some containers may start; one for all policies that list the same. */
export interface AllowList {
  /** Its number in the kernel; 0 while it is not there. */
  readonly id: number;
  /** SHA-256 of its paths, in hexadecimal; equal for equal lists on every node. */
  readonly digest: string;
  readonly paths: Uint32Array;
}

interface MutableAllowList extends AllowList {
  id: number;
  uses: number;
  loading: Promise<void> | undefined;
}

/** Lists by content. Every list that was taken must be given back. */
export interface AllowLists {
  /** The list of these paths, in whatever order and however often they are given. Counts as one use. */
  take(paths: readonly ExecutablePath[]): AllowList;
  /** One more use of a list. */
  share(list: AllowList): AllowList;
  /** A list that an agent before put into the kernel. Counts as one use. */
  adopt(id: number, paths: readonly ExecutablePath[]): AllowList;
  /** Puts the list into the kernel, unless it is there. Rejects as {@link AllowedTables.add} does. */
  load(list: AllowList): Promise<void>;
  /** Takes the list out of the kernel. Nobody may look it up any more. Rejects with a NativeError. */
  unload(list: AllowList): Promise<void>;
  /**
   * Gives one use back. With its last use the list leaves the kernel, once no program can still look into it; the
   * promise resolves then, and rejects with a NativeError.
   * @returns whether anything left the kernel
   */
  release(list: AllowList): Promise<boolean>;
  /** Reserves the numbers up to this one: the kernel holds entries of them. */
  reserveIds(highest: number): void;
}

export function createAllowLists(tables: AllowedTables, paths: PathInterner, grace: GracePeriod): AllowLists {
  const byDigest = new Map<string, MutableAllowList>();
  const idsInUse = new Set<number>();
  let lastId = 0;

  const mutable = (list: AllowList): MutableAllowList => list as MutableAllowList;
  /** Far from being used again soon: a program may still hold a number that was given up. */
  const nextId = (): number => {
    do lastId = lastId >= LIST_ID_MAX ? 1 : lastId + 1;
    while (idsInUse.has(lastId));
    idsInUse.add(lastId);
    return lastId;
  };
  const take = (given: readonly ExecutablePath[]): MutableAllowList => {
    const sorted = given.toSorted();
    const texts = sorted.filter((text, i) => text !== sorted[i - 1]);
    const digest = digestOf(texts);
    const known = byDigest.get(digest);
    if (known !== undefined && holds(known, texts)) {
      known.uses++;
      return known;
    }
    const list = {
      id: 0,
      digest,
      uses: 1,
      loading: undefined,
      paths: Uint32Array.from(texts, (text) => paths.use(text)),
    };
    if (known === undefined) byDigest.set(digest, list);
    return list;
  };
  const holds = (list: AllowList, texts: readonly ExecutablePath[]): boolean =>
    list.paths.length === texts.length && texts.every((text, i) => paths.text(list.paths[i] ?? -1) === text);

  const unload = async (list: MutableAllowList): Promise<void> => {
    const { id } = list;
    if (id === 0) return;
    list.id = 0;
    await tables.remove({ id, paths: list.paths });
    idsInUse.delete(id);
  };

  return {
    take,
    share(list) {
      mutable(list).uses++;
      return list;
    },
    adopt(id, given) {
      const list = take(given);
      // Two lists of equal content may be there; one is enough, and the other is a stray.
      if (list.id === 0) {
        list.id = id;
        idsInUse.add(id);
      }
      return list;
    },
    async load(given) {
      const list = mutable(given);
      if (list.id !== 0) return;
      list.loading ??= (async () => {
        const id = nextId();
        try {
          await tables.add({ id, paths: list.paths });
          list.id = id;
        } catch (error) {
          idsInUse.delete(id);
          throw error;
        } finally {
          list.loading = undefined;
        }
      })();
      await list.loading;
    },
    unload: (list) => unload(mutable(list)),
    async release(given) {
      const list = mutable(given);
      list.uses--;
      if (list.uses > 0) return false;
      if (byDigest.get(list.digest) === list) byDigest.delete(list.digest);
      await list.loading?.catch(() => undefined);
      const isLoaded = list.id !== 0;
      if (isLoaded) {
        await grace.passed();
        await unload(list);
      }
      list.paths.forEach((path) => paths.release(path));
      return isLoaded;
    },
    reserveIds(highest) {
      lastId = Math.max(lastId, highest);
    },
  };
}

/** The text form of a path is one to one with its bytes, and holds no NUL. */
function digestOf(sortedTexts: readonly string[]): string {
  return createHash('sha256').update(sortedTexts.join('\0')).digest('hex');
}
