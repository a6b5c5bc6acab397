import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { treeEntries } from './archive-tree.ts';

describe('treeEntries', () => {
  let directory = '';
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'tree-test-'));
    mkdirSync(join(directory, 'tree/sub'), { recursive: true });
    writeFileSync(join(directory, 'tree/sub/run'), 'x');
    chmodSync(join(directory, 'tree/sub/run'), 0o751);
    symlinkSync('sub/run', join(directory, 'tree/link'));
    symlinkSync('tree', join(directory, 'to-tree'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('takes a directory with modes and links, under another path', async () => {
    expect(await treeEntries(join(directory, 'tree'), 'payload/t')).toEqual([
      { kind: 'directory', path: 'payload/t', mode: 0o755 },
      { kind: 'link', path: 'payload/t/link', target: 'sub/run' },
      { kind: 'directory', path: 'payload/t/sub', mode: 0o755 },
      { kind: 'file', path: 'payload/t/sub/run', mode: 0o751, content: Buffer.from('x') },
    ]);
  });

  it('takes one file, puts a directory at the root, and follows a link at the top', async () => {
    expect(await treeEntries(join(directory, 'tree/sub/run'), 'r')).toEqual([
      { kind: 'file', path: 'r', mode: 0o751, content: Buffer.from('x') },
    ]);
    const paths = (await treeEntries(join(directory, 'to-tree'), '/')).map(({ path }) => path);
    expect(paths).toEqual(['link', 'sub', 'sub/run']);
  });

  it('names what it cannot take', async () => {
    await expect(treeEntries('/dev/null', 'null')).rejects.toThrow('/dev/null');
    await expect(treeEntries(join(directory, 'nothing'), 'x')).rejects.toThrow('nothing');
  });
});
