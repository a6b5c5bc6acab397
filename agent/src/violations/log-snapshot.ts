import type { KeptEntry } from './cumulative-log.ts';
import { baseLine, endedLine, entryLine } from './log-segment.ts';

/** Length at which text is handed on to be written. */
const CHUNK_CHARACTERS = 256 * 1024;

/**
 * The lines that stand for a whole log, in pieces that can be written one after the other: living subjects first,
 * what changed last before what changed long ago. Keys that `maxBytes` leaves no room for are left out.
 * @param entries by sequence
 * @param header the first line
 * @param onOmitted told how many keys were left out, if any were
 */
export function* snapshotTexts<T>(
  entries: readonly KeptEntry<T>[],
  maxBytes: number,
  header: string,
  onOmitted: (count: number) => void,
): Generator<string> {
  const living: KeptEntry<T>[][] = [];
  const ended: KeptEntry<T>[][] = [];
  for (const chain of Map.groupBy(entries, ({ key }) => key).values()) {
    (chain.at(-1)?.ended === true ? ended : living).push(chain);
  }
  const newestFirst = (one: KeptEntry<T>[], other: KeptEntry<T>[]): number =>
    (other.at(-1)?.sequence ?? 0) - (one.at(-1)?.sequence ?? 0);
  let text = header;
  let bytes = Buffer.byteLength(header);
  let omitted = 0;
  for (const chains of [living, ended]) {
    for (const chain of chains.sort(newestFirst)) {
      const lines = chainLines(chain);
      const size = Buffer.byteLength(lines);
      if (bytes + size > maxBytes) {
        omitted++;
        continue;
      }
      bytes += size;
      text += lines;
      if (text.length < CHUNK_CHARACTERS) continue;
      yield text;
      text = '';
    }
  }
  yield text;
  if (omitted > 0) onOmitted(omitted);
}

function chainLines<T>(chain: readonly KeptEntry<T>[]): string {
  const [first] = chain;
  const last = chain.at(-1);
  if (first === undefined || last === undefined) return '';
  const base = first.previous === undefined ? '' : baseLine(first.key, first.previous);
  return base + chain.map(entryLine).join('') + (last.ended ? endedLine(last.key) : '');
}
