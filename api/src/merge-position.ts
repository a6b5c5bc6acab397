import { MAX_INCARNATION_CHARACTERS, MAX_MERGE_POSITIONS } from './limits.ts';
import { list, object, text, wholeNumber, type Check } from './schema.ts';

/** Incarnations per node that are remembered: while one agent takes the place of another, both are read. */
const MAX_INCARNATIONS = 2;

/** Up to where one sequence of an agent's entries is counted in a status. Written together with the counts. */
export interface MergePosition {
  readonly nodeName: string;
  readonly incarnation: string;
  /** Of the last entry that was counted. */
  readonly sequence: number;
}

const position: Check<MergePosition> = object(
  {
    nodeName: text({ max: 253 }),
    incarnation: text({ max: MAX_INCARNATION_CHARACTERS }),
    sequence: wholeNumber({ min: 0 }),
  },
  {},
);

export const mergePositions: Check<MergePosition[]> = list(position, { max: MAX_MERGE_POSITIONS });

/** Equal for positions in the same sequence. */
export function sequenceKey({ nodeName, incarnation }: Omit<MergePosition, 'sequence'>): string {
  return JSON.stringify([nodeName, incarnation]);
}

/** Where each sequence is, by {@link sequenceKey}. */
export function positionsByKey(positions: readonly MergePosition[]): Map<string, number> {
  const byKey = new Map<string, number>();
  for (const each of positions) {
    const key = sequenceKey(each);
    byKey.set(key, Math.max(byKey.get(key) ?? 0, each.sequence));
  }
  return byKey;
}

/**
 * The positions after further ones, which never go back. The latest moved stand last. Of a node, the two latest
 * incarnations are kept; where there are too many nodes, those that have not moved for longest are left out.
 */
export function advancePositions(
  positions: readonly MergePosition[],
  moved: readonly MergePosition[],
): readonly MergePosition[] {
  if (moved.length === 0) return positions;
  const byKey = new Map(positions.map((each) => [sequenceKey(each), each]));
  for (const each of moved) {
    const key = sequenceKey(each);
    const known = byKey.get(key);
    byKey.delete(key);
    byKey.set(key, known !== undefined && known.sequence > each.sequence ? known : each);
  }
  const perNode = new Map<string, number>();
  const kept = [...byKey.values()].reverse().filter(({ nodeName }) => {
    const count = (perNode.get(nodeName) ?? 0) + 1;
    perNode.set(nodeName, count);
    return count <= MAX_INCARNATIONS;
  });
  return kept.slice(0, MAX_MERGE_POSITIONS).reverse();
}
