import { nextTurn } from '../event-loop.ts';
import type { BootClock } from './boot-clock.ts';
import type { ContainerLookup, SeenEntry } from './enforcer.ts';
import { seenEntryAt } from './exec-record.ts';
import { Mode, SEEN_KEY_LAYOUT, SEEN_VALUE_LAYOUT } from './gen/abi.ts';
import type { NativeMap } from './native.ts';

/** How long one turn of the loop may be taken; a map of 65,536 entries may have changed whole. */
const SLICE_MS = 2;
/** Entries that are decoded between two looks at the clock. */
const ENTRIES_PER_LOOK = 64;
/**
 * Entries that were last touched so long before the newest one are told again: the program takes the time, is
 * preempted, and stores it a little later.
 */
const OVERLAP_NS = 1_000_000_000;
const HIGH_WORD = 2 ** 32;
const LAST_NS = SEEN_VALUE_LAYOUT.offsets.last_ns;

/**
 * Reads the kernel's counts. Each call tells the entries that changed since the call before, and some that did not;
 * the first tells all. Rejects with a NativeError.
 */
export function createSeenReading(
  map: Pick<NativeMap, 'entries'>,
  clock: BootClock,
): (lookup: ContainerLookup) => Promise<readonly SeenEntry[]> {
  let newestNs = 0;

  return async (lookup) => {
    const { keys, values, count } = await map.entries();
    const keyView = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
    const valueView = new DataView(values.buffer, values.byteOffset, values.byteLength);
    const sinceNs = newestNs - OVERLAP_NS;
    const changed: number[] = [];
    for (let index = 0; index < count; index++) {
      const at = index * SEEN_VALUE_LAYOUT.size + LAST_NS;
      // A few microseconds too coarse after 104 days, and many times faster than a bigint.
      const lastNs = valueView.getUint32(at + 4, true) * HIGH_WORD + valueView.getUint32(at, true);
      if (lastNs >= sinceNs) changed.push(index);
      if (lastNs > newestNs) newestNs = lastNs;
    }
    const entries: SeenEntry[] = [];
    let sliceStart = performance.now();
    for (const index of changed) {
      const [key, value] = [index * SEEN_KEY_LAYOUT.size, index * SEEN_VALUE_LAYOUT.size];
      entries.push(seenEntryAt(keyView, key, valueView, value, clock, lookup));
      if (entries.length % ENTRIES_PER_LOOK !== 0 || performance.now() - sliceStart < SLICE_MS) continue;
      await nextTurn();
      sliceStart = performance.now();
    }
    return entries;
  };
}

/** Makes the kernel tell everything that is learned once more, as if for the first time. Rejects with a NativeError. */
export async function forgetLearned(map: Pick<NativeMap, 'entries' | 'deleteMany'>): Promise<void> {
  const { keys, count } = await map.entries();
  const size = SEEN_KEY_LAYOUT.size;
  const learned = Buffer.alloc(count * size);
  let found = 0;
  for (let index = 0; index < count; index++) {
    const key = keys.subarray(index * size, (index + 1) * size);
    // The reason stands beside the mode, and what is learned has none.
    if (key[SEEN_KEY_LAYOUT.offsets.mode_and_reason] !== Mode.MODE_NONE) continue;
    learned.set(key, found++ * size);
  }
  if (found > 0) await map.deleteMany(learned.subarray(0, found * size), found);
}
