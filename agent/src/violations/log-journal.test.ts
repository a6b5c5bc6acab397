import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFile,
  cp,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fakeReporting } from '../node/fake-kernel.ts';
import { type LogJournal, type LogJournalOptions, openLogJournal, type SegmentFile } from './log-journal.ts';

let directory: string;
let reporting: ReturnType<typeof fakeReporting>;
const opened: LogJournal<number>[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'log-journal-'));
  reporting = fakeReporting();
});
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.stop(1_000);
  await rm(directory, { recursive: true });
});

async function openJournal(options: Partial<LogJournalOptions<number>> = {}): Promise<LogJournal<number>> {
  const journal = await openLogJournal<number>({
    ...{ directory, name: 'test', log: reporting.log, counters: reporting.counters },
    asValue: (value) => (typeof value === 'number' ? value : undefined),
    ...options,
  });
  opened.push(journal);
  return journal;
}

/** Adds up what came to each key after the cursor, as a reader does. */
function readAll(journal: LogJournal<number>, from: number): { sum: number; cursor: number } {
  let sum = 0;
  let cursor = from;
  for (let more = true; more;) {
    const page = journal.log.changedSince(cursor, 7);
    for (const { value, previous } of page.entries) sum += value - (previous?.value ?? 0);
    ({ cursor, more } = page);
  }
  return { sum, cursor };
}

async function segmentFiles(): Promise<string[]> {
  return (await readdir(directory)).sort().map((name) => join(directory, name));
}

describe('the next agent', () => {
  it('goes on with the incarnation, the values and what each reader has yet to read', async () => {
    const first = await openJournal();
    first.log.put('a', 2);
    first.log.put('b', 1);
    await first.flush();
    const read = readAll(first, 0);
    expect(read.sum).toBe(3);
    first.log.put('a', 5);
    first.log.put('a', 6);
    await first.stop(1_000);

    const second = await openJournal();
    expect(second.log.incarnation).toBe(first.log.incarnation);
    expect([...second.log.values()]).toEqual([
      ['a', 6],
      ['b', 1],
    ]);
    second.log.put('a', 10);
    await second.flush();
    expect(readAll(second, read.cursor).sum).toBe(8);
    expect(reporting.counters.value('journal_lines_broken')).toBe(0);
  });

  it('never gives out a sequence number again', async () => {
    const first = await openJournal();
    first.log.put('a', 1);
    await first.stop(1_000);
    const second = await openJournal();
    second.log.put('a', 2);
    expect(second.log.sequence).toBeGreaterThan(first.log.sequence + 1_000_000);
  });

  it('does not know what was acknowledged and gone', async () => {
    const first = await openJournal();
    first.log.put('gone', 1);
    first.log.put('ended', 1);
    first.log.put('living', 1);
    first.log.remove('gone');
    await first.flush();
    first.log.acknowledge(readAll(first, 0).cursor);
    first.log.remove('ended');
    first.log.put('living', 4);
    await first.stop(1_000);
    const second = await openJournal();
    expect(second.log.entries()).toMatchObject([{ key: 'living', value: 4, previous: { value: 1 } }]);
  });

  it('begins anew where the directory holds nothing that it understands', async () => {
    await writeFile(join(directory, 'test-000000000007.jsonl'), '{"version":99}\n{"s":1,"k":"a","v":1}\n');
    const journal = await openJournal();
    expect(journal.log.size.keys).toBe(0);
    journal.log.put('a', 1);
    await journal.stop(1_000);
    const next = await openJournal();
    expect([...next.log.values()]).toEqual([['a', 1]]);
    expect(await segmentFiles()).toEqual([join(directory, 'test-000000000008.jsonl')]);
  });

  it('is told in one sentence what is wrong with the directory', async () => {
    await writeFile(join(directory, 'file'), '');
    await expect(openJournal({ directory: join(directory, 'file') })).rejects.toThrow(
      /^cannot read the journal in --journal-dir .*file/,
    );
  });
});

describe('what was torn or damaged', () => {
  it('is passed over at whatever byte the last write ended', async () => {
    const journal = await openJournal();
    for (let value = 1; value <= 20; value++) {
      journal.log.put(`ключ-${value % 3}`, value);
      await journal.flush();
      readAll(journal, 0);
    }
    await journal.stop(1_000);
    const [file = ''] = await segmentFiles();
    const whole = await readFile(file);
    let known = 0;
    for (let length = whole.length; length > whole.indexOf('\n'); length -= 3) {
      await truncate(file, length);
      const torn = await openJournal();
      const newest = Math.max(0, ...[...torn.log.values()].map(([, value]) => value));
      if (length === whole.length) known = newest;
      expect(newest).toBeLessThanOrEqual(known);
      expect(newest).toBeGreaterThanOrEqual(known - 1);
      known = newest;
      expect(torn.recovered.broken).toBeLessThanOrEqual(1);
      await torn.stop(0);
      opened.pop();
    }
    expect(known).toBeLessThanOrEqual(1);
    expect(await segmentFiles()).toEqual([file]);
  });

  it('is counted and said, and counts nothing twice', async () => {
    const journal = await openJournal();
    journal.log.put('a', 5);
    await journal.flush();
    const { cursor } = readAll(journal, 0);
    journal.log.put('a', 6);
    await journal.stop(1_000);
    const [file = ''] = await segmentFiles();
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('"v":5', '"v":"'));
    await appendFile(file, Buffer.from([0xff, 0x00, 0x0a, 0x0a]));
    const next = await openJournal();
    expect(reporting.counters.value('journal_lines_broken')).toBe(4);
    expect(
      reporting.lines.some(({ message }) => message.includes('lines of the journal cannot be read')),
    ).toBe(true);
    expect(readAll(next, cursor).sum).toBe(0);
    next.log.put('a', 7);
    await next.flush();
    expect(readAll(next, next.log.sequence - 1).sum).toBe(1);
  });

  it('is no trouble where the agent was killed between a snapshot and the removal of what it replaces', async () => {
    const journal = await openJournal({ maxBytes: 3_000 });
    const copy = await mkdtemp(join(tmpdir(), 'log-journal-old-'));
    journal.log.put('gone', 1);
    await journal.flush();
    journal.log.acknowledge(readAll(journal, 0).cursor);
    await cp(directory, copy, { recursive: true });
    journal.log.remove('gone');
    for (let value = 1; value <= 100; value++) {
      journal.log.put('a', value);
      await journal.flush();
    }
    await journal.stop(1_000);
    expect(await segmentFiles()).not.toContain(join(directory, 'test-000000000001.jsonl'));
    await cp(copy, directory, { recursive: true });
    await writeFile(join(directory, 'test-000000000099.jsonl.tmp'), 'half a snap');
    await rm(copy, { recursive: true });
    const next = await openJournal();
    expect([...next.log.values()]).toEqual([['a', 100]]);
    expect((await segmentFiles()).some((file) => file.endsWith('.tmp'))).toBe(false);
  });
});

/** Files on a disk with a given room, which fails as Linux does: half of the text is written, then there is an error. */
function smallDisk(): { room: number; open: (path: string) => Promise<SegmentFile> } {
  const disk = {
    room: Number.POSITIVE_INFINITY,
    async open(path: string): Promise<SegmentFile> {
      if (disk.room <= 0) throw noSpace();
      const handle = await open(path, 'a');
      return {
        async appendFile(text) {
          const part = text.slice(0, disk.room);
          disk.room -= part.length;
          await handle.appendFile(part);
          if (part.length < text.length) throw noSpace();
        },
        truncate: (bytes) => handle.truncate(bytes),
        datasync: () => handle.datasync(),
        close: () => handle.close(),
      };
    },
  };
  return disk;
}

function noSpace(): Error {
  return Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
}

describe('a full disk', () => {
  it('is counted and said once, holds no reader up, and is made good when there is room', async () => {
    const disk = smallDisk();
    const journal = await openJournal({ openFile: disk.open });
    journal.log.put('a', 1);
    await journal.flush();
    disk.room = 10;
    for (let value = 2; value <= 9; value++) {
      journal.log.put('a', value);
      await journal.flush();
    }
    expect(readAll(journal, 0).sum).toBe(9);
    expect(reporting.counters.value('journal_write_errors')).toBeGreaterThanOrEqual(8);
    expect(reporting.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(journal.waiting).toBe(1);
    disk.room = Number.POSITIVE_INFINITY;
    await journal.flush();
    expect(journal.waiting).toBe(0);
    await journal.stop(1_000);
    const next = await openJournal();
    expect([...next.log.values()]).toEqual([['a', 9]]);
    expect(next.recovered.broken).toBe(0);
  });

  it('is asked again by itself', async () => {
    const disk = smallDisk();
    const journal = await openJournal({ openFile: disk.open });
    disk.room = 0;
    journal.log.put('a', 1);
    await journal.flush();
    disk.room = 1_000_000;
    await expect.poll(() => journal.waiting, { timeout: 5_000 }).toBe(0);
  });

  it('costs a bounded memory, whatever changes meanwhile', async () => {
    const disk = smallDisk();
    const journal = await openJournal({ openFile: disk.open });
    disk.room = 0;
    for (let index = 0; index < 100_000; index++) {
      journal.log.put(`k${index}`, 1);
      journal.log.remove(`k${index}`);
    }
    expect(journal.waiting).toBeLessThan(50_000);
    const { keys } = journal.log.size;
    expect(keys).toBeLessThanOrEqual(11_250);
    expect(reporting.counters.value('journal_entries_forgotten')).toBe(100_000 - keys);
    disk.room = Number.POSITIVE_INFINITY;
    await journal.flush();
    const { sum } = readAll(journal, 0);
    expect(sum).toBe(keys);
    await journal.stop(1_000);
    expect((await openJournal()).log.size.keys).toBe(keys);
  });
});

describe('the size', () => {
  it('stays below its bound while everything that is needed is kept', async () => {
    const maxBytes = 60_000;
    const journal = await openJournal({ maxBytes });
    let largest = 0;
    for (let round = 1; round <= 60; round++) {
      for (let key = 0; key < 50; key++) journal.log.put(`key-${key}`, round);
      await journal.flush();
      let bytes = 0;
      for (const file of await segmentFiles()) bytes += (await stat(file)).size;
      expect(journal.bytes).toBe(bytes);
      largest = Math.max(largest, bytes);
      journal.log.acknowledge(readAll(journal, 0).cursor);
    }
    expect(largest).toBeLessThanOrEqual(maxBytes);
    expect(largest).toBeGreaterThan(maxBytes / 2);
    await journal.stop(1_000);
    expect((await openJournal()).log.size.keys).toBe(50);
    expect(reporting.counters.value('journal_entries_not_kept')).toBe(0);
  });

  it('leaves out what ended and what changed long ago, and says how much', async () => {
    const journal = await openJournal({ maxBytes: 6_000 });
    for (let key = 0; key < 100; key++) journal.log.put(`key-${key}`, 1);
    for (let key = 80; key < 100; key++) journal.log.remove(`key-${key}`);
    await journal.flush();
    for (let round = 0; round < 10; round++) {
      journal.log.put('key-79', round);
      await journal.flush();
    }
    expect(reporting.counters.value('journal_entries_not_kept')).toBeGreaterThan(0);
    expect(journal.log.size.keys).toBe(100);
    expect(journal.bytes).toBeLessThanOrEqual(6_000);
    await journal.stop(1_000);
    const kept = [...(await openJournal()).log.values()].map(([key]) => key);
    expect(kept).toContain('key-79');
    expect(kept).not.toContain('key-0');
  });

  it('is not made of ever more files by agents that start over and over', async () => {
    for (let start = 1; start <= 70; start++) {
      const journal = await openJournal();
      journal.log.put('a', start);
      await journal.stop(1_000);
    }
    expect((await segmentFiles()).length).toBeLessThan(66);
    expect([...(await openJournal()).log.values()]).toEqual([['a', 70]]);
  });
});

/** Copies the directory of a journal that may replace its files meanwhile. */
async function copyLiving(from: string, to: string): Promise<void> {
  for (;;) {
    try {
      await cp(from, to, { recursive: true });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await rm(to, { recursive: true, force: true });
    }
  }
}

type Step =
  | { readonly kind: 'put'; readonly key: number; readonly by: number }
  | { readonly kind: 'flush' | 'read' | 'store' | 'acknowledge' | 'kill' | 'handover' };

it('lets a reader count exactly over kills, handovers and its own crashes', async () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant('put'), key: fc.nat(5), by: fc.integer({ min: 1, max: 9 }) }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constantFrom('flush', 'read', 'store', 'acknowledge', 'kill', 'handover'),
      }),
    },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const root = await mkdtemp(join(directory, 'run-'));
      let life = 0;
      let place = join(root, '0');
      const start = (): Promise<LogJournal<number>> => openJournal({ directory: place, maxBytes: 2_000 });
      let journal = await start();
      const truth = new Map<string, number>();
      let stored = { count: 0, cursor: 0 };
      let counted = stored;
      const read = (): void => {
        const { sum, cursor } = readAll(journal, counted.cursor);
        counted = { count: counted.count + sum, cursor };
      };
      for (const each of steps) {
        if (each.kind === 'put') {
          const key = String(each.key);
          const total = (truth.get(key) ?? 0) + each.by;
          truth.set(key, total);
          journal.log.put(key, total);
        } else if (each.kind === 'flush') await journal.flush();
        else if (each.kind === 'read') read();
        else if (each.kind === 'store') stored = counted;
        else if (each.kind === 'acknowledge') journal.log.acknowledge(stored.cursor);
        else {
          if (each.kind === 'handover') await journal.stop(1_000);
          const next = join(root, String(++life));
          await copyLiving(place, next);
          place = next;
          await journal.stop(1_000);
          journal = await start();
          counted = stored;
          // The kernel still has its counts.
          for (const [key, total] of truth) journal.log.put(key, total);
        }
      }
      await journal.flush();
      read();
      expect(counted.count).toBe([...truth.values()].reduce((sum, value) => sum + value, 0));
      expect(reporting.counters.value('journal_entries_not_kept')).toBe(0);
      await journal.stop(1_000);
    }),
    { numRuns: 40 },
  );
}, 60_000);

describe('SIGKILL', () => {
  let child: ChildProcess | undefined;
  afterEach(() => child?.kill('SIGKILL'));

  it('takes nothing back that a reader was given', async () => {
    for (let round = 0; round < 5; round++) {
      const program = fileURLToPath(new URL('log-journal-writer.ts', import.meta.url));
      child = spawn(process.execPath, [program, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
      const given = new Map<string, { sequence: number; value: number }>();
      if (child.stdout === null) throw new Error('no output');
      for await (const line of createInterface(child.stdout)) {
        const { key, sequence, value } = JSON.parse(line) as { key: string; sequence: number; value: number };
        given.set(key, { sequence, value });
        if (given.size >= 200 + round * 37) {
          child.kill('SIGKILL');
          break;
        }
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      const journal = await openJournal();
      const newest = new Map(journal.log.values());
      for (const [key, { value }] of given) expect(newest.get(key)).toBeGreaterThanOrEqual(value);
      expect(given.size).toBeGreaterThanOrEqual(200);
      await journal.stop(1_000);
    }
  }, 60_000);
});
