import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fakeReporting } from '../node/fake-kernel.ts';
import { openLogJournal, type LogJournal } from './log-journal.ts';

/** A file system of its own, so that it can be filled. */
const DISK = 'size=256k';
const FILLER_BYTES = 1024 * 1024;

let disk: string;
let reporting: ReturnType<typeof fakeReporting>;
const opened: LogJournal<string>[] = [];
beforeEach(async () => {
  disk = await mkdtemp(join(tmpdir(), 'full-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', disk]);
  reporting = fakeReporting();
});
afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.stop(1_000);
  execFileSync('umount', [disk]);
  await rm(disk, { recursive: true });
});

async function openJournal(): Promise<LogJournal<string>> {
  const journal = await openLogJournal<string>({
    ...{ directory: join(disk, 'journal'), name: 'test', log: reporting.log, counters: reporting.counters },
    asValue: (value) => (typeof value === 'string' ? value : undefined),
  });
  opened.push(journal);
  return journal;
}
/** Takes every byte that is left. */
async function fill(): Promise<void> {
  await writeFile(join(disk, 'filler'), Buffer.alloc(FILLER_BYTES)).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'ENOSPC' });
  });
}
const free = () => rm(join(disk, 'filler'));
const errors = () => reporting.lines.filter(({ level }) => level === 'error');
const values = (journal: LogJournal<string>) => new Map(journal.log.values());

describe('a journal on a disk that is full', () => {
  it('serves its readers, says so once, and has everything on disk when there is room', async () => {
    const journal = await openJournal();
    journal.log.put('before', 'x');
    await journal.flush();
    await fill();
    for (let i = 0; i < 200; i++) {
      journal.log.put(`k${i % 20}`, `${i} ${'y'.repeat(200)}`);
      if (i % 20 === 19) await journal.flush();
    }
    expect(reporting.counters.value('journal_write_errors')).toBeGreaterThan(1);
    expect(errors()).toHaveLength(1);
    expect(JSON.stringify(errors())).toContain('the disk is full');
    expect(journal.log.changedSince(0, 100).entries).toHaveLength(21);
    await free();
    await expect.poll(() => journal.waiting, { timeout: 5_000 }).toBe(0);
    const kept = values(journal);
    await journal.stop(1_000);
    const next = await openJournal();
    expect(values(next)).toEqual(kept);
    expect(next.recovered.broken).toBe(0);
  });

  it('opens, goes on from what it finds, and serves readers', async () => {
    const before = await openJournal();
    before.log.put('before', 'x');
    await before.flush();
    await before.stop(1_000);
    await fill();
    const journal = await openJournal();
    journal.log.put('during', 'y');
    await journal.flush();
    expect([...values(journal)]).toEqual([
      ['before', 'x'],
      ['during', 'y'],
    ]);
    expect(journal.log.changedSince(0, 10).entries.map(({ value }) => value)).toEqual(['x', 'y']);
    expect(errors()).toHaveLength(1);
    // An agent that is killed now has lost nothing that was there before.
    const heir = await openJournal();
    expect(values(heir).get('before')).toBe('x');
    await free();
    await expect.poll(() => journal.waiting, { timeout: 5_000 }).toBe(0);
  });

  it('opens without a directory that it could make a file in, once there is room', async () => {
    execFileSync('mount', ['-o', 'remount,nr_inodes=2', disk]);
    const journal = await openJournal();
    journal.log.put('a', 'x');
    await journal.flush();
    expect(journal.log.changedSince(0, 10).entries).toHaveLength(1);
    expect([errors().length, journal.waiting]).toEqual([1, 1]);
    execFileSync('mount', ['-o', 'remount,nr_inodes=100', disk]);
    await expect.poll(() => journal.waiting, { timeout: 5_000 }).toBe(0);
  });
});
