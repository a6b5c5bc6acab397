import type { AllowList, AllowLists } from './allow-list.ts';
import { TableFullError, type AllowedTables } from './allowed-tables.ts';
import type { PolicyEntries, PolicyEntry } from './policy-entry.ts';

/** Puts the lists that policies want into the kernel, and makes room for those that this node needs. */
export interface ListLoader {
  /**
   * Loads every list that the policy wants. Returns why it cannot be; nothing of what was not there before is
   * left then. Unless `evict`, only what is free is used; otherwise lists that no container uses give way.
   */
  load(entry: PolicyEntry, evict: boolean): Promise<Error | undefined>;
}

export function createListLoader(
  entries: PolicyEntries,
  lists: AllowLists,
  tables: AllowedTables,
): ListLoader {
  /** One at a time: two that make room at once would throw out more than is needed. */
  let evicting: Promise<unknown> = Promise.resolve();

  const loadOne = async (list: AllowList, evict: boolean): Promise<void> => {
    for (;;) {
      try {
        await lists.load(list);
        return;
      } catch (error) {
        if (!(error instanceof TableFullError)) throw error;
        if (entries.isLeaving()) {
          await entries.settled();
          continue;
        }
        if (!evict) throw error;
        const { keyBytes } = error;
        const eviction = evicting.then(() => makeRoom(list, keyBytes));
        evicting = eviction.catch(() => undefined);
        if (!(await eviction)) throw error;
      }
    }
  };

  /** Returns false where there is nothing more to give way. */
  const makeRoom = async (list: AllowList, keyBytes: number): Promise<boolean> => {
    const wanted = tables.entriesIn(list, keyBytes);
    const { used, unused } = entries.listsByUse();
    const needed = used.reduce((sum, each) => sum + tables.entriesIn(each, keyBytes), wanted);
    // It would not fit even alone: nothing is to go for that.
    if (needed > tables.capacity(keyBytes)) return false;
    let freed = 0;
    for (const victim of unused) {
      const holds = tables.entriesIn(victim, keyBytes);
      if (holds === 0 || victim === list) continue;
      entries.evict(victim);
      await lists.unload(victim);
      freed += holds;
      if (freed >= wanted) break;
    }
    return freed > 0;
  };

  return {
    async load(entry, evict) {
      const wanted = (): AllowList[] =>
        Array.from(entry.rules.values())
          .filter(({ named }) => named)
          .map((rule) => rule.wanted);
      // Another policy's failure or eviction may take a shared list away while the others are loaded.
      while (wanted().some((list) => list.id === 0)) {
        const results = await Promise.allSettled(wanted().map((list) => loadOne(list, evict)));
        const failed = results.find((result) => result.status === 'rejected');
        if (failed === undefined) continue;
        for (const list of wanted()) {
          if (list.id !== 0 && !entries.isInForce(list)) await lists.unload(list);
        }
        return failed.reason instanceof Error ? failed.reason : new Error(String(failed.reason));
      }
      return undefined;
    },
  };
}
