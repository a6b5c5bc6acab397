import type { ReportedPolicy } from './reported.ts';

/** Of these, two generations are kept. */
const MAX_ENTRIES = 16_384;
/** What is longer is an error's text, which no two nodes share. */
const MAX_ENTRY_BYTES = 512;

/** A policy, by `namespace/name`, and what a node's kernel holds of it. */
export type PolicyEntry = readonly [key: string, policy: ReportedPolicy];

/**
 * Entries that were read before, by their bytes: each node reports each policy, and nearly all say the same. What is equal
 * is then read once, kept once, and known by being the same object. What is not the same object may be equal all the
 * same.
 */
export interface PolicyEntryPool {
  /** @param read makes the entry out of the bytes; undefined where they are to be left out */
  take(bytes: string, read: () => PolicyEntry | undefined): PolicyEntry | undefined;
}

/** See {@link PolicyEntryPool}. */
export function policyEntryPool(): PolicyEntryPool {
  let entries = new Map<string, PolicyEntry>();
  let earlier: typeof entries = new Map();
  return {
    take(bytes, read) {
      const known = entries.get(bytes);
      if (known !== undefined) return known;
      const entry = earlier.get(bytes) ?? read();
      if (entry === undefined || bytes.length > MAX_ENTRY_BYTES) return entry;
      if (entries.size >= MAX_ENTRIES) {
        earlier = entries;
        entries = new Map();
      }
      entries.set(bytes, entry);
      return entry;
    },
  };
}
