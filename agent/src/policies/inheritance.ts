import { executablePathFromBytes, type ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { CountFailure } from '../kernel/failures.ts';
import { LIST_ID_BYTES } from '../kernel/gen/abi.ts';
import type { GracePeriod } from '../kernel/grace-period.ts';
import type { AllowedTable } from '../kernel/maps.ts';
import type { Logger } from '../nri/handlers.ts';
import type { AllowList, AllowLists } from './allow-list.ts';
import type { PolicyRule } from './policy-entry.ts';
import type { PolicyWord, PolicyWords } from './policy-words.ts';

/**
 * What an agent before left in the maps: words and lists without names. A container that still has such an id
 * tells, by its pod's label, whose it is.
 */
export interface Inheritance {
  claim(policyId: number): InheritedPolicy | undefined;
  /** From now on the id belongs to this rule. */
  claimed(policyId: number, rule: PolicyRule): void;
  /** Takes out what nobody claimed. Rejects with a NativeError. */
  drop(): Promise<void>;
}

export type InheritedPolicy =
  | { readonly kind: 'free'; readonly word: PolicyWord; readonly list: AllowList }
  | { readonly kind: 'claimed'; readonly rule: PolicyRule };

interface Parts {
  readonly tables: readonly AllowedTable[];
  readonly lists: AllowLists;
  readonly words: PolicyWords;
  readonly grace: GracePeriod;
  readonly log: Logger;
  readonly countFailure: CountFailure;
}

/** Reads the maps; entries of lists that no word names are taken out. Rejects with a NativeError. */
export async function createInheritance(parts: Parts): Promise<Inheritance> {
  const { lists, words, grace, log } = parts;
  const found = await words.adopt();
  const content = await readLists(parts, new Set(Array.from(found.values(), ({ list }) => list)));
  lists.reserveIds(content.highestId);

  const inherited = new Map<number, InheritedPolicy>();
  for (const [id, word] of found) {
    const list = lists.adopt(word.list, content.paths.get(word.list) ?? []);
    inherited.set(id, { kind: 'free', word, list });
    if (list.id !== word.list) {
      // The same list twice: an agent ended between writing one and sharing the other.
      words.write(id, { ...word, list: list.id });
      content.strays.addList(word.list);
    }
  }
  const removed = await content.strays.remove(grace);
  if (removed > 0)
    log.info({ entries: removed }, 'removed entries of lists that nothing referred to any more');

  return {
    claim: (id) => inherited.get(id),
    claimed: (id, rule) => void inherited.set(id, { kind: 'claimed', rule }),
    async drop() {
      const unclaimed = Array.from(inherited).flatMap(([id, policy]) =>
        policy.kind === 'free' ? [{ id, list: policy.list }] : [],
      );
      inherited.clear();
      for (const { id } of unclaimed) words.clear(id);
      if (unclaimed.length > 0) await grace.passed();
      for (const { id } of unclaimed) words.free(id);
      await Promise.all(unclaimed.map(({ list }) => lists.release(list)));
    },
  };
}

interface Strays {
  addList(id: number): void;
  /** Returns how many entries were removed, once no program can look them up. */
  remove(grace: GracePeriod): Promise<number>;
}

async function readLists(
  { tables, countFailure }: Parts,
  wanted: ReadonlySet<number>,
): Promise<{ paths: Map<number, ExecutablePath[]>; highestId: number; strays: Strays }> {
  const paths = new Map<number, ExecutablePath[]>();
  const contents = await Promise.all(
    tables.map(async ({ map, keyBytes }) => ({ map, keyBytes, ...(await map.entries()) })),
  );
  const strayLists = new Set<number>();
  const strayKeys = contents.map(() => [] as Uint8Array[]);
  const known = new Map<string, ExecutablePath>();
  let highestId = 0;

  for (const [index, { keyBytes, keys, count }] of contents.entries()) {
    const view = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
    for (let i = 0; i < count; i++) {
      const id = view.getUint32(i * keyBytes, true);
      highestId = Math.max(highestId, id);
      const key = keys.subarray(i * keyBytes, (i + 1) * keyBytes);
      const path = wanted.has(id) ? pathIn(key, known) : undefined;
      if (path === undefined) {
        if (wanted.has(id)) countFailure('inherited_list_undecodable');
        strayKeys[index]?.push(key);
        continue;
      }
      const list = paths.get(id);
      if (list === undefined) paths.set(id, [path]);
      else list.push(path);
    }
  }

  return {
    paths,
    highestId,
    strays: {
      addList: (id) => void strayLists.add(id),
      async remove(grace) {
        for (const [index, { keyBytes, keys, count }] of contents.entries()) {
          if (strayLists.size === 0) break;
          const view = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
          for (let i = 0; i < count; i++) {
            if (!strayLists.has(view.getUint32(i * keyBytes, true))) continue;
            strayKeys[index]?.push(keys.subarray(i * keyBytes, (i + 1) * keyBytes));
          }
        }
        if (strayKeys.every((each) => each.length === 0)) return 0;
        await grace.passed();
        const removed = await Promise.all(
          contents.map(({ map }, index) => {
            const gone = strayKeys[index] ?? [];
            return map.deleteMany(Buffer.concat(gone), gone.length);
          }),
        );
        return removed.reduce((sum, count) => sum + count, 0);
      },
    },
  };
}

/** The path of an entry; undefined for bytes that no policy can hold. Equal paths give one and the same text. */
function pathIn(key: Uint8Array, known: Map<string, ExecutablePath>): ExecutablePath | undefined {
  const padded = key.subarray(LIST_ID_BYTES);
  const end = padded.indexOf(0);
  const bytes = Buffer.from(padded.buffer, padded.byteOffset, end < 0 ? padded.length : end);
  const raw = bytes.toString('latin1');
  const already = known.get(raw);
  if (already !== undefined) return already;
  const parsed = executablePathFromBytes(bytes);
  if (!parsed.ok) return undefined;
  known.set(raw, parsed.value);
  return parsed.value;
}
