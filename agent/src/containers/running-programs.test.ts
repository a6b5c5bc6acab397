import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadNative } from '../kernel/native.ts';
import { openCgroupTree } from './cgroup-tree.ts';
import { startExampleContainer, type ExampleContainer } from './container-example.ts';
import { readRunningPrograms } from './running-programs.ts';

const tree = await openCgroupTree(loadNative());
const LIBRARIES = /(?:=> )?(\/\S+) \(0x/g;

/** A root file system with nothing but `sleep`, its libraries, and what `more` adds. */
function makeRoot(directory: string, programs: readonly string[]): void {
  const sleep = execFileSync('readlink', ['-f', '/bin/sleep'], { encoding: 'utf8' }).trim();
  const libraries = execFileSync('ldd', [sleep], { encoding: 'utf8' });
  for (const [, library = ''] of libraries.matchAll(LIBRARIES)) {
    mkdirSync(join(directory, library, '..'), { recursive: true });
    copyFileSync(library, join(directory, library));
  }
  for (const program of programs) {
    mkdirSync(join(directory, program, '..'), { recursive: true });
    copyFileSync(sleep, join(directory, program));
  }
}

describe('running programs', () => {
  let directory: string;
  let example: ExampleContainer | undefined;
  const unreadable: string[] = [];

  /** Starts a shell script in a mount namespace of its own; its last command is the process. */
  const run = async (script: string, nested?: string): Promise<ExampleContainer> => {
    example = await startExampleContainer(tree, {
      command: ['sh', '-c', script],
      ...(nested !== undefined && { nested }),
    });
    return example;
  };
  const read = async (mountNamespace = example?.mountNamespace ?? 0) => {
    const { programs, incomplete } = await readRunningPrograms(example?.directory ?? '', mountNamespace, () =>
      unreadable.push('unreadable'),
    );
    return {
      incomplete,
      programs: programs.map(({ path, ...program }) => ({ ...program, path: Buffer.from(path).toString() })),
    };
  };
  const untilRuns = (path: string) =>
    expect.poll(async () => (await read()).programs.map((program) => program.path)).toEqual([path]);

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'enforcer-running-'));
    unreadable.length = 0;
  });
  afterEach(async () => {
    await example?.remove();
    example = undefined;
    rmSync(directory, { recursive: true });
    expect(unreadable).toEqual([]);
  });

  it('are named from the root of the container', async () => {
    makeRoot(directory, ['/usr/bin/program']);
    const pivot = 'mount --bind . . && cd "$PWD" && mkdir old && pivot_root . old';
    await run(`cd ${directory} && ${pivot} && exec /usr/bin/program 1000`);
    await untilRuns('/usr/bin/program');
    expect((await read()).programs).toEqual([
      { pid: example?.pid, path: '/usr/bin/program', kind: 'file', otherMountNamespace: false },
    ]);
  });

  it('are named from the top also when the process changed its root', async () => {
    makeRoot(join(directory, 'inner'), ['/bin/program']);
    await run(`mount --make-rprivate / && exec chroot ${directory}/inner /bin/program 1000`);
    await untilRuns(`${directory}/inner/bin/program`);
  });

  it('are known as deleted, also where a name only looks so', async () => {
    const path = join(directory, 'gone (deleted)');
    makeRoot(directory, ['/gone (deleted)']);
    await run(`exec '${path}' 1000`);
    await untilRuns(join(directory, 'gone'));
    unlinkSync(path);
    expect((await read()).programs).toMatchObject([{ path, kind: 'deleted' }]);
  });

  it('keep their name when it changes', async () => {
    makeRoot(directory, ['/before']);
    await run(`exec ${directory}/before 1000`);
    await untilRuns(`${directory}/before`);
    renameSync(join(directory, 'before'), join(directory, 'after'));
    await untilRuns(`${directory}/after`);
  });

  it('of another mount namespace are told apart', async () => {
    await run('exec sleep 1000');
    expect((await read(1)).programs).toMatchObject([{ otherMountNamespace: true }]);
    expect((await read(0)).programs).toMatchObject([{ otherMountNamespace: false }]);
  });

  it('in cgroups below are found', async () => {
    await run('exec sleep 1000', 'init.scope');
    await expect.poll(async () => (await read()).programs.length).toBe(1);
  });

  it('of a cgroup that is gone are none', async () => {
    expect(await readRunningPrograms(`${tree.root}/none/such`, 0, () => unreadable.push(''))).toEqual({
      programs: [],
      incomplete: false,
    });
  });

  it('are not all read in a container with very many cgroups', { timeout: 90_000 }, async () => {
    await run('exec sleep 1000');
    const nested = Array.from({ length: 1_100 }, (_, i) => `${example?.directory ?? ''}/n${i}`);
    for (const each of nested) mkdirSync(each);
    try {
      expect((await read()).incomplete).toBe(true);
    } finally {
      for (const each of nested) execFileSync('rmdir', [each]);
    }
  });
});
