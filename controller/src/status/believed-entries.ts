import type { EntrySource, SourceQueue, UnstoredEntry } from './unstored-entries.ts';

/** Why an entry is not believed. */
export type Refusal =
  | 'OtherNode'
  /** The pod is of another node, or names another policy. */
  | 'OtherPod'
  /** Neither is there such a pod, nor was one seen. */
  | 'UnknownPod'
  /** There is no such policy, or proposal. */
  | 'UnknownObject'
  /** It breaks the bounds of `api/`. */
  | 'Malformed'
  /** The API server does not take the status, again and again. */
  | 'NotStored';

/** `later`: nothing is known yet, and will be in a moment. */
export type Belief = 'believed' | 'later' | Refusal;

/** What of a source's entries can be stored now. */
export interface BelievedBatch<T> extends EntrySource {
  readonly entries: readonly UnstoredEntry<T>[];
  readonly refused: readonly { readonly entry: UnstoredEntry<T>; readonly refusal: Refusal }[];
}

/**
 * The entries of each source that can be stored now, up to the first about which more will be known: a status only
 * remembers the last one.
 */
export function believedBatches<T>(
  queues: readonly SourceQueue<T>[],
  belief: (entry: UnstoredEntry<T>, source: EntrySource) => Belief,
): BelievedBatch<T>[] {
  return queues.map(({ nodeName, incarnation, entries }) => {
    const believed: UnstoredEntry<T>[] = [];
    const refused: BelievedBatch<T>['refused'][number][] = [];
    // Of two readers of one sequence, the slower may have come later.
    const inOrder = [...entries.values()].sort((one, other) => one.sequence - other.sequence);
    for (const entry of inOrder) {
      const answer = belief(entry, { nodeName, incarnation });
      if (answer === 'later') break;
      if (answer === 'believed') believed.push(entry);
      else refused.push({ entry, refusal: answer });
    }
    return { nodeName, incarnation, entries: believed, refused };
  });
}
