import { createHash } from 'node:crypto';

/** A whole number below the bound, the next of a repeatable sequence. */
export type Draw = (below: number) => number;

/** xorshift32. In a guest, a generator that can shrink takes longer than the execs that it is for. */
export function drawFrom(seed: string): Draw {
  let state = createHash('sha256').update(seed).digest().readUInt32LE() | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

export function pick<Item>(draw: Draw, items: readonly Item[]): Item {
  const item = items[draw(items.length)];
  if (item === undefined) throw new RangeError('nothing to pick from');
  return item;
}
