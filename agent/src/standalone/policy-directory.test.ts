import { chmod, mkdir, mkdtemp, open, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FileChange } from './directory-scan.ts';
import { fakeReporting } from '../node/fake-kernel.ts';
import { createPolicyDirectory, type PolicyDirectory } from './policy-directory.ts';

/** What the product promises of any change. */
const EFFECT_MS = 1_000;

let base: string;
let directory: string;
let changes: FileChange[];
let reporting: ReturnType<typeof fakeReporting>;
let running: PolicyDirectory | undefined;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'policy-directory-'));
  directory = join(base, 'policies');
  await mkdir(directory);
  changes = [];
  reporting = fakeReporting();
  running = undefined;
});
afterEach(async () => {
  await running?.stop();
  await rm(base, { recursive: true });
});

async function follow(path = directory): Promise<void> {
  running = createPolicyDirectory({
    directory: path,
    onChanges: (news) => {
      changes.push(...news);
      return Promise.resolve();
    },
    ...reporting,
  });
  await running.start();
}

/** What is told of a file within the promised time, or undefined. */
async function told(file: string, kind: FileChange['kind'], text?: string): Promise<FileChange | undefined> {
  const deadline = performance.now() + EFFECT_MS;
  for (;;) {
    const found = changes.find(
      (change) =>
        change.file === file &&
        change.kind === kind &&
        (text === undefined ||
          (change.kind === 'content' && Buffer.from(change.content).toString() === text)),
    );
    if (found !== undefined || performance.now() >= deadline) return found;
    await delay(10);
  }
}

describe('a followed directory', () => {
  it('hands on the files that are there before it says that it has started', async () => {
    await writeFile(join(directory, 'a.yaml'), 'a');
    await writeFile(join(directory, 'b.yml'), 'b');
    await follow();
    expect(changes.map(({ file }) => file)).toEqual(['a.yaml', 'b.yml']);
  });

  it('tells of new, edited and removed files within a second', async () => {
    await follow();
    await writeFile(join(directory, 'a.yaml'), 'one');
    expect(await told('a.yaml', 'content', 'one')).toBeDefined();
    await writeFile(join(directory, 'a.yaml'), 'two');
    expect(await told('a.yaml', 'content', 'two')).toBeDefined();
    await writeFile(join(directory, '.new'), 'three');
    await rename(join(directory, '.new'), join(directory, 'a.yaml'));
    expect(await told('a.yaml', 'content', 'three')).toBeDefined();
    await unlink(join(directory, 'a.yaml'));
    expect(await told('a.yaml', 'removed')).toBeDefined();
  });

  it("passes over editors' files, other names and directories called like a file", async () => {
    for (const name of ['.a.yaml.swp', '.#a.yaml', 'a.yaml~', '4913', 'notes.txt', '..data.yaml']) {
      await writeFile(join(directory, name), 'x');
    }
    await mkdir(join(directory, 'folder.yaml'));
    await follow();
    expect(changes.map(({ file, kind }) => [file, kind])).toEqual([['folder.yaml', 'unreadable']]);
  });

  it('waits until a file that is written in steps is whole', async () => {
    await follow();
    const file = await open(join(directory, 'a.yaml'), 'w');
    for (const part of ['one ', 'two ', 'three']) {
      await file.write(part);
      await delay(40);
    }
    await file.close();
    expect(await told('a.yaml', 'content', 'one two three')).toBeDefined();
    expect(changes).toHaveLength(1);
  });

  it('does not wait for ever for a file that is never whole', async () => {
    await follow();
    const file = await open(join(directory, 'a.yaml'), 'w');
    const deadline = performance.now() + EFFECT_MS;
    while (performance.now() < deadline) {
      await file.write('x');
      await delay(20);
    }
    await file.close();
    expect(changes.length).toBeGreaterThan(0);
  });

  it("follows the swap of a volume's symbolic links", async () => {
    for (const version of ['v1', 'v2']) {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, 'a.yaml'), version);
    }
    await symlink('v1', join(directory, '..data'));
    await symlink('..data/a.yaml', join(directory, 'a.yaml'));
    await follow();
    expect(await told('a.yaml', 'content', 'v1')).toBeDefined();
    await symlink('v2', join(directory, '..tmp'));
    await rename(join(directory, '..tmp'), join(directory, '..data'));
    expect(await told('a.yaml', 'content', 'v2')).toBeDefined();
  });

  it('takes a renamed file for one that went and one that came, and tells both at once', async () => {
    await writeFile(join(directory, 'a.yaml'), 'x');
    await follow();
    changes = [];
    await rename(join(directory, 'a.yaml'), join(directory, 'b.yaml'));
    expect(await told('b.yaml', 'content', 'x')).toBeDefined();
    expect(changes.map(({ file, kind }) => `${file} ${kind}`)).toEqual(['a.yaml removed', 'b.yaml content']);
  });

  it('an editor that moves the file away and writes it anew removes nothing', async () => {
    await writeFile(join(directory, 'a.yaml'), 'old');
    await follow();
    await rename(join(directory, 'a.yaml'), join(directory, 'a.yaml~'));
    await delay(30);
    await writeFile(join(directory, 'a.yaml'), 'new');
    expect(await told('a.yaml', 'content', 'new')).toBeDefined();
    expect(changes.filter(({ kind }) => kind === 'removed')).toEqual([]);
  });

  it('is told once of a file that cannot be read, and again when it can', async () => {
    await symlink('nowhere', join(directory, 'a.yaml'));
    execFileSync('mkfifo', [join(directory, 'pipe.yaml')]);
    await follow();
    expect(changes).toEqual([
      { file: 'a.yaml', kind: 'unreadable', problem: 'it does not exist' },
      { file: 'pipe.yaml', kind: 'unreadable', problem: 'it is not a regular file' },
    ]);
    await delay(EFFECT_MS);
    expect(changes).toHaveLength(2);
    await writeFile(join(directory, 'nowhere'), 'here');
    expect(await told('a.yaml', 'content', 'here')).toBeDefined();
  });

  it('keeps everything while the directory is gone, and goes on when it is back', async () => {
    await writeFile(join(directory, 'a.yaml'), 'one');
    await follow();
    await rename(directory, join(base, 'away'));
    await delay(EFFECT_MS);
    expect(changes).toHaveLength(1);
    expect(reporting.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(reporting.counters.value('policy_files_unreadable')).toBe(1);
    await mkdir(directory);
    await writeFile(join(directory, 'a.yaml'), 'two');
    expect(await told('a.yaml', 'content', 'two')).toBeDefined();
    await writeFile(join(directory, 'a.yaml'), 'three');
    expect(await told('a.yaml', 'content', 'three')).toBeDefined();
  });

  it('says at the start what is wrong with the directory', async () => {
    await expect(follow(join(base, 'nowhere'))).rejects.toThrow(
      `cannot read the policy directory ${join(base, 'nowhere')}: it does not exist`,
    );
    running = undefined;
    await writeFile(join(base, 'file'), '');
    await expect(follow(join(base, 'file'))).rejects.toThrow('a part of its path is not a directory');
    running = undefined;
    await chmod(directory, 0o755);
  });
});
