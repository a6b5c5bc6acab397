import { appendFile, mkdtemp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fakeReporting } from '../node/fake-kernel.ts';
import { createLineFile, type LineFile } from './line-file.ts';

let directory: string;
let file: string;
let reporting: ReturnType<typeof fakeReporting>;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'line-file-'));
  file = join(directory, 'violations.jsonl');
  reporting = fakeReporting();
});
afterEach(async () => rm(directory, { recursive: true }));

async function opened(more: Partial<Parameters<typeof createLineFile>[0]> = {}): Promise<LineFile> {
  const lineFile = createLineFile({ file, ...reporting, ...more });
  await lineFile.start();
  return lineFile;
}

const lines = async (path = file): Promise<string[]> => (await readFile(path, 'utf8')).split('\n');

/** Waits until the file holds so many lines. */
async function written(count: number): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if (reporting.counters.value('violation_lines_written') >= count) return;
    await delay(10);
  }
  throw new Error(`${reporting.counters.value('violation_lines_written')} of ${count} lines were written`);
}

describe('a file of lines', () => {
  it('holds what was written, in order, after what was there', async () => {
    await writeFile(file, 'before\n');
    const lineFile = await opened();
    for (let number = 0; number < 1000; number++) lineFile.write(`line ${number}`);
    await lineFile.stop(5_000);
    const found = await lines();
    expect([found.length, found[0], found[1], found[1000]]).toEqual([1002, 'before', 'line 0', 'line 999']);
  });

  it('begins a new line after one that was cut off', async () => {
    await writeFile(file, 'whole\nhal');
    const lineFile = await opened();
    lineFile.write('next');
    await lineFile.stop(5_000);
    expect(await lines()).toEqual(['whole', 'hal', 'next', '']);
  });

  it('is put aside when it is full, and the oldest goes', async () => {
    const lineFile = await opened({ maxFileBytes: 100, maxFiles: 3 });
    for (let number = 10; number < 30; number++) {
      lineFile.write(`line ${number} ${'x'.repeat(31)}`);
      await written(number - 9);
    }
    await lineFile.stop(5_000);
    const names = (await readdir(directory)).sort();
    expect(names).toEqual(['violations.jsonl', 'violations.jsonl.1', 'violations.jsonl.2']);
    for (const name of names) expect((await stat(join(directory, name))).size).toBeLessThanOrEqual(100);
    expect((await lines()).at(-2)).toMatch(/^line 29/);
    expect((await lines(`${file}.2`))[0]).toMatch(/^line 24/);
  });

  it('follows its name when somebody moves it', async () => {
    const lineFile = await opened();
    lineFile.write('one');
    await written(1);
    await rename(file, `${file}.moved`);
    lineFile.write('two');
    await lineFile.stop(5_000);
    expect(await lines()).toEqual(['two', '']);
  });

  it('counts what it cannot take, and never waits', async () => {
    const lineFile = await opened({ maxWaitingBytes: 100 });
    const taken = Array.from({ length: 50 }, () => lineFile.write('x'.repeat(19)));
    expect(taken.filter(Boolean)).toHaveLength(5);
    await lineFile.stop(5_000);
    expect(lineFile.write('after the end')).toBe(false);
    expect(reporting.counters.value('violation_lines_dropped')).toBe(46);
    expect(reporting.counters.value('violation_lines_written')).toBe(5);
  });

  it('tries again after an error, and loses nothing', async () => {
    const lineFile = await opened();
    await rm(file);
    await mkdir(file);
    lineFile.write('one');
    while (reporting.counters.value('violation_write_errors') === 0) await delay(10);
    await rm(file, { recursive: true });
    lineFile.write('two');
    await written(2);
    await appendFile(file, '');
    await lineFile.stop(5_000);
    expect(await lines()).toEqual(['one', 'two', '']);
    const told = reporting.lines.filter(({ level }) => level === 'error');
    expect(told.map(({ fields }) => fields['problem'])).toEqual(['it is a directory']);
  });

  it('ends in time when it cannot be written', async () => {
    const lineFile = await opened();
    await rm(file);
    await mkdir(file);
    lineFile.write('one');
    await lineFile.stop(200);
    expect(reporting.counters.value('violation_lines_dropped')).toBe(1);
  });

  it('says at the start what is wrong with it', async () => {
    await expect(opened({ file: join(directory, 'no', 'file') })).rejects.toThrow(
      `cannot write the violations file ${join(directory, 'no', 'file')}: it does not exist`,
    );
    await expect(opened({ file: directory })).rejects.toThrow('it is a directory');
  });
});
