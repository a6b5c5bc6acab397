import { Outcome } from './gen/abi.ts';
import type { NativeMap } from './native.ts';

const PREFIX = 'OUTCOME_';

/** Names of the outcomes by their index: `untracked`, `denied`, … */
export const OUTCOME_NAMES: readonly string[] = Object.entries(Outcome)
  .filter(([, index]) => index < Outcome.OUTCOME_COUNT)
  .sort(([, a], [, b]) => a - b)
  .map(([name]) => name.slice(PREFIX.length).toLowerCase());

/** Adds up every CPU's counts. Rejects with a NativeError. */
export async function readOutcomes(map: NativeMap): Promise<Record<string, bigint>> {
  const { keys, values, count } = await map.entries();
  const keyView = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  const valueView = new DataView(values.buffer, values.byteOffset, values.byteLength);
  const outcomes: Record<string, bigint> = Object.fromEntries(OUTCOME_NAMES.map((name) => [name, 0n]));
  for (let entry = 0; entry < count; entry++) {
    const name = OUTCOME_NAMES[keyView.getUint32(entry * map.keySize, true)];
    if (name === undefined) continue;
    let sum = 0n;
    for (let at = entry * map.valueBytes; at < (entry + 1) * map.valueBytes; at += 8) {
      sum += valueView.getBigUint64(at, true);
    }
    outcomes[name] = sum;
  }
  return outcomes;
}
