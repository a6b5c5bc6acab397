import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildGuestPrograms, GUEST_PROGRAMS, type GuestProgram } from './build.ts';

const MARKER = 'marker: ran\n';
const BUILD_BUDGET_MS = 60_000;
/** All 4,094 paths together take 8 MiB. */
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

let programs: Readonly<Record<GuestProgram, string>>;
let scratch: string;

beforeAll(async () => {
  programs = await buildGuestPrograms();
  scratch = mkdtempSync(join(tmpdir(), 'guest-programs-'));
}, BUILD_BUDGET_MS);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: GuestProgram, ...args: string[]): Ended {
  const { status, stdout, stderr } = spawnSync(programs[program], args, {
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  return { code: status, stdout, stderr };
}

/** Runs a program with a private tmpfs as its whole file system, as root. */
function runInEmptyRoot(program: GuestProgram, ...args: string[]): Ended {
  const root = mkdtempSync(join(scratch, 'root-'));
  const script =
    'mount -t tmpfs root "$1" && cp "$2" "$1/program" && cp "$3" "$1/tiny" && mkdir "$1/old" && cd "$1" && ' +
    'shift 3 && pivot_root . old && exec /program "$@"';
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    ['-m', 'sh', '-c', script, 'sh', root, programs[program], programs.tiny, ...args],
    { encoding: 'utf8' },
  );
  return { code: status, stdout, stderr };
}

it('builds every program it names, and nothing else', () => {
  expect(readdirSync(dirname(programs.tiny)).sort()).toEqual([...GUEST_PROGRAMS].sort());
});

it('keeps the programs of exec loops below a kilobyte', () => {
  expect(statSync(programs.tiny).size).toBeLessThan(1024);
  expect(statSync(programs.marker).size).toBeLessThan(1024);
  expect(run('tiny')).toEqual({ code: 0, stdout: '', stderr: '' });
});

// A denial proves something only if the same attempt succeeds where nothing denies it.
describe('attack succeeds without enforcement', () => {
  it.each([
    ['plain', () => [programs.marker]],
    ['relative', () => [dirname(programs.marker), './marker']],
    ['execveat', () => [dirname(programs.marker), 'marker']],
    ['fexecve', () => [programs.marker]],
    ['memfd', () => [programs.marker, '/usr/bin/ls']],
    ['memfd-sealed', () => [programs.marker]],
    ['unlinked', () => [programs.marker, join(scratch, 'unlinked')]],
    ['unnamed', () => [programs.marker, scratch]],
    ['chroot', () => [dirname(programs.marker), '/marker']],
    ['open-tree', () => [dirname(programs.marker), 'marker']],
    ['open-tree-closed', () => [dirname(programs.marker), 'marker']],
    ['user-bind', () => [programs.marker, programs.tiny]],
    ['user-chroot', () => [dirname(programs.marker), '/marker']],
    ['user-pivot', () => [dirname(programs.marker), '/marker']],
    ['user-open-tree', () => [dirname(programs.marker), 'marker']],
    ['user-fsmount', () => [programs.marker, 'marker']],
    ['setns', () => [String(process.pid), programs.marker]],
    ['setns-orphan', () => [String(process.pid), programs.marker]],
    ['setns-vfork', () => [String(process.pid), programs.marker]],
    ['setns-vfork-sibling', () => [String(process.pid), programs.marker]],
    ['orphan', () => [programs.marker]],
    ['vfork', () => [programs.marker]],
    ['vfork-sibling', () => [programs.marker]],
    ['thread', () => [programs.marker]],
  ] as const)('%s', (mode, args) => {
    expect(run('attack', mode, ...args())).toEqual({ code: 0, stdout: MARKER, stderr: '' });
  });

  it('overwrite', () => {
    const target = join(scratch, 'overwritten');
    copyFileSync(programs.tiny, target);
    expect(run('attack', 'overwrite', programs.marker, target)).toEqual({
      code: 0,
      stdout: MARKER,
      stderr: '',
    });
  });

  it('bind-over, in a mount namespace of its own', () => {
    const { status, stdout } = spawnSync(
      'unshare',
      ['-m', programs.attack, 'bind-over', programs.marker, programs.tiny],
      { encoding: 'utf8' },
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: MARKER });
  });

  it('leaves the real program where the bind mount was', () => {
    expect(run('tiny').stdout).toBe('');
  });
});

describe('attack tells failures apart', () => {
  it('names the errno of an exec that was not denied', () => {
    expect(run('attack', 'plain', '/etc/passwd')).toEqual({ code: 67, stdout: 'exec: EACCES\n', stderr: '' });
    expect(run('attack', 'vfork-sibling', '/nowhere')).toEqual({
      code: 67,
      stdout: 'exec: ENOENT\n',
      stderr: '',
    });
    expect(run('attack', 'orphan', '/nowhere').code).toBe(67);
    expect(run('attack', 'thread', '/nowhere').code).toBe(67);
    expect(run('attack', 'vfork', '/nowhere').code).toBe(67);
  });

  it('says that nothing was attempted if the way to the exec was barred', () => {
    const { code, stderr } = run('attack', 'chroot', '/nowhere', '/marker');
    expect(code).toBe(68);
    expect(stderr).toBe('not attempted: chroot: ENOENT\n');
  });

  it('explains itself on an unknown mode and on missing arguments', () => {
    expect(run('attack').code).toBe(2);
    expect(run('attack', 'unheard-of').stderr).toContain('memfd SOURCE NAME');
    expect(run('attack', 'memfd', 'x').code).toBe(2);
  });
});

describe('execstorm', () => {
  it('counts per path, stops at its count, and ends early on SIGTERM', async () => {
    const counted = run('execstorm', '--count', '40', '--cpu', '0', `${programs.tiny}@200`, '/etc/passwd');
    const { paths } = JSON.parse(counted.stdout) as {
      paths: Record<string, { ran: number; denied: number; other: number }>;
    };
    expect(paths[programs.tiny]).toEqual({ ran: 40, denied: 0, other: 0 });
    expect(paths['/etc/passwd']?.other).toBeGreaterThan(0);

    const storm = spawn(programs.execstorm, ['--seconds', '600', programs.tiny], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    setTimeout(() => storm.kill('SIGTERM'), 100);
    const output = (await storm.stdout.toArray()).join('');
    expect(output).toMatch(/^\{"seconds":\d+\.\d+,"paths":/);
  });

  it('alternates between the paths of one loop', () => {
    const { stdout } = run('execstorm', '--count', '20', `${programs.tiny},${programs.marker}`);
    expect(stdout).toContain(`"${programs.tiny}":{"ran":20,"denied":0,"other":0}`);
    expect(stdout).toMatch(new RegExp(`"${programs.marker}":{"ran":(19|20),`));
  });

  it('refuses unusable arguments', () => {
    expect(run('execstorm').code).toBe(2);
    expect(run('execstorm', '--seconds', 'soon', '/x').stderr).toContain('--seconds: expected a number');
    expect(run('execstorm', '--cgroup', '/nowhere', '/x').code).toBe(68);
  });
});

describe('pathlengths', () => {
  it('prints a path of each length', () => {
    const lines = run('pathlengths', 'print', 'lengths', '2', '4095').stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.length)).toEqual(Array.from({ length: 4094 }, (_, index) => index + 2));
    for (const line of lines) expect(line).toMatch(/^(\/[^/]{1,255})+$/);
  });

  it('runs every length in all variants', () => {
    const all = [[2, 4095, 'ran']];
    expect(
      JSON.parse(runInEmptyRoot('pathlengths', 'run', '/tiny', '-', 'lengths', '2', '4095').stdout),
    ).toEqual({
      listed: all,
      first: all,
      last: all,
    });
  });

  it('runs deep trees and directories beyond PATH_MAX', () => {
    const components = runInEmptyRoot('pathlengths', 'run', '/tiny', '-', 'components', '1', '513', '2047');
    expect((JSON.parse(components.stdout) as { first: unknown }).first).toEqual([
      [1, 1, 'ran'],
      [513, 513, 'ran'],
      [2047, 2047, 'ran'],
    ]);
    const deep = runInEmptyRoot('pathlengths', 'run', '/tiny', '-', 'deep', '4096', '4201', '20000');
    expect(JSON.parse(deep.stdout)).toEqual({
      4096: { relative: 'ran', execveat: 'ran' },
      4201: { relative: 'ran', execveat: 'ran' },
      20000: { relative: 'ran', execveat: 'ran' },
    });
  });

  it('refuses lengths that no path can have', () => {
    expect(run('pathlengths', 'print', 'lengths', '1', '20').stderr).toContain('from 2 to 4095');
    expect(run('pathlengths', 'print', 'lengths', '20').code).toBe(2);
  });
});

it('execcheck asks without executing, or says that the kernel cannot', () => {
  const { code, stdout, stderr } = run('execcheck', programs.marker);
  if (code === 68) expect(stderr).toBe('not attempted: AT_EXECVE_CHECK: EINVAL\n');
  else expect({ code, stdout }).toEqual({ code: 0, stdout: 'check: allowed\n' });
});

it('cgroups explains itself and names what it cannot use', () => {
  expect(run('cgroups', 'churn').code).toBe(2);
  expect(run('cgroups', 'join', '/nowhere', '/x').stderr).toContain('/nowhere/cgroup.procs');
  expect(run('cgroups', 'churn', scratch, 'many').stderr).toContain('COUNT: expected a number');
});

it('pause ends at once when told to, also as the first process of a pid namespace', async () => {
  const parent = spawn('unshare', ['--pid', '--fork', '--kill-child=TERM', programs.pause], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The pipe closes when pause has ended: unshare's end only sends it SIGTERM.
  const ended = new Promise<boolean>((resolve) => parent.stdout.once('close', () => resolve(true)));
  setTimeout(() => parent.kill('SIGKILL'), 200);
  parent.stdout.resume();
  expect(await ended).toBe(true);
});
