/**
 * Program of a test: changes keys of a journal as fast as it can, reads as a reader does, and prints each entry that
 * it was given, until it is killed. Argument: the directory.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { openLogJournal } from './log-journal.ts';

const silent = (): void => undefined;
const KEYS = 1_000;
const PAGE = 64;

async function writeForEver(directory: string): Promise<never> {
  const { log } = await openLogJournal<number>({
    ...{ directory, name: 'test', maxBytes: 4 * 1024 * 1024 },
    asValue: (value) => (typeof value === 'number' ? value : undefined),
    log: { debug: silent, info: silent, warn: silent, error: silent },
    counters: { add: silent, value: () => 0 },
  });
  const values = new Map(log.values());
  let cursor = log.sequence;
  for (let index = 0; ; index++) {
    const key = `key-${index % KEYS}`;
    const value = (values.get(key) ?? 0) + 1;
    values.set(key, value);
    log.put(key, value);
    if (index % PAGE !== 0) continue;
    const page = log.changedSince(cursor, PAGE);
    ({ cursor } = page);
    for (const { sequence, value: given, key: of } of page.entries) {
      process.stdout.write(`${JSON.stringify({ key: of, sequence, value: given })}\n`);
    }
    log.acknowledge(cursor);
    await turn();
  }
}

await writeForEver(process.argv[2] ?? '');
