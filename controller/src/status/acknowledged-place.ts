import type { Cursor } from '@runtime-enforcer/rpc/reported';

/** How far one sequence of an agent's entries is stored without a gap. */
export interface AcknowledgedPlace {
  /** An entry, or the end of a page, was read. @returns to be called once it is stored */
  read(sequence: number): () => void;
  /** Up to where everything is stored. */
  readonly cursor: Cursor;
}

/** See {@link AcknowledgedPlace}. */
export function acknowledgedPlace(incarnation: string): AcknowledgedPlace {
  const waiting: { readonly sequence: number; isStored: boolean }[] = [];
  let first = 0;
  let stored = 0;
  return {
    read(sequence) {
      const place = { sequence, isStored: false };
      waiting.push(place);
      return () => {
        if (place.isStored) return;
        place.isStored = true;
        for (let next = waiting[first]; next?.isStored === true; next = waiting[first]) {
          stored = Math.max(stored, next.sequence);
          first++;
        }
        if (first * 2 > waiting.length) {
          waiting.splice(0, first);
          first = 0;
        }
      };
    },
    get cursor() {
      return { incarnation, sequence: stored };
    },
  };
}
