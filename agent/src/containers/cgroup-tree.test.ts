import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../kernel/native.ts';
import {
  cgroupIn,
  findContainerCgroup,
  memorySubsystem,
  openCgroupTree,
  presentCgroupId,
} from './cgroup-tree.ts';
import { startExampleContainer } from './container-example.ts';

const CGROUP2 = 0x63677270;
const TMPFS = 0x01021994;
/** sh -c … CGROUP PLACE SUBSYSTEM: in that cgroup and a cgroup namespace of its own, mounts at PLACE what it sees there. */
const OWN_CGROUPS = `
echo $$ > "$1/cgroup.procs"
exec unshare --cgroup --mount sh -c '
  if [ "$3" -lt 0 ]; then mount -t cgroup2 none "$2"; else mount -t cgroup -o memory none "$2"; fi
  echo mounted; read end' sh "$@"
`;

/** A node where these paths hold these file systems. */
function node(magics: Readonly<Record<string, number>>, mounted: readonly string[] = [], rootId = 1n) {
  return {
    filesystemType(path: string) {
      const magic = magics[path];
      if (magic === undefined) throw new Error(`ENOENT ${path}`);
      return { magic };
    },
    isMountPoint: (path: string) => mounted.includes(path),
    cgroupId: () => rootId,
  };
}

describe('cgroup tree', () => {
  it('is the unified one on a v2 host, by the view of the host', async () => {
    const tree = await openCgroupTree(
      node({ '/proc/1/root/sys/fs/cgroup': CGROUP2, '/sys/fs/cgroup': CGROUP2 }),
    );
    expect(tree).toEqual({ root: '/proc/1/root/sys/fs/cgroup', subsystem: -1, hiddenLevelsMax: 0 });
  });

  it('is our own view where the host has none to see', async () => {
    expect((await openCgroupTree(node({ '/sys/fs/cgroup': CGROUP2 }))).root).toBe('/sys/fs/cgroup');
  });

  it('reckons with levels above a root that is not the topmost cgroup', async () => {
    const tree = await openCgroupTree(node({ '/sys/fs/cgroup': CGROUP2 }, [], 4_321n));
    expect(tree.hiddenLevelsMax).toBeGreaterThan(0);
  });

  it.each([
    ['nothing', node({}), 'no cgroup file system at /sys/fs/cgroup'],
    ['something else', node({ '/sys/fs/cgroup': 0xef53 }), 'neither cgroup v2 nor'],
    [
      'no memory hierarchy',
      node({ '/sys/fs/cgroup': TMPFS }),
      'memory controller of cgroup v1 is not mounted at',
    ],
  ])('says what is missing where there is %s', async (_, native, message) => {
    await expect(openCgroupTree(native)).rejects.toThrow(message);
  });

  it('finds the memory controller by its place in /proc/cgroups', () => {
    const head = '#subsys_name\thierarchy\tnum_cgroups\tenabled\n';
    expect(memorySubsystem(`${head}cpuset\t1\t1\t1\ncpu\t2\t1\t1\nmemory\t3\t1\t1\n`)).toBe(2);
    expect(memorySubsystem(head)).toBeUndefined();
    const others = Array.from({ length: 14 }, (_, i) => `other${i}\t${i}\t1\t1\n`).join('');
    expect(memorySubsystem(`${head}${others}memory\t15\t1\t1\n`)).toBeUndefined();
  });

  it('reads the cgroup of a process, whatever its name', () => {
    const text = '12:cpu,cpuacct:/a\n5:memory:/kube:pods/x y\n0::/unified\n';
    expect(cgroupIn(text, { subsystem: 3 })).toBe('/kube:pods/x y');
    expect(cgroupIn(text, { subsystem: -1 })).toBe('/unified');
    expect(cgroupIn('', { subsystem: -1 })).toBeUndefined();
  });

  it('field 33: says so where it is shown the cgroups of a container’s own namespace, and takes none of them', async () => {
    const native = loadNative();
    const tree = await openCgroupTree(native);
    const example = await startExampleContainer(tree);
    const mountPoint = await mkdtemp(join(tmpdir(), 'enforcer-cgroups-'));
    const own = spawn(
      'sh',
      ['-c', OWN_CGROUPS, 'sh', example.directory, mountPoint, String(tree.subsystem)],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    try {
      await once(own.stdout, 'data');
      // What an agent would see that shares neither the node's pid namespace nor its cgroups.
      const root = `/proc/${own.pid}/root${mountPoint}`;
      expect(native.cgroupId(root)).toBe(native.cgroupId(example.directory));
      const magic = tree.subsystem < 0 ? { '/sys/fs/cgroup': CGROUP2 } : { '/sys/fs/cgroup': TMPFS };
      const shown = await openCgroupTree(node(magic, ['/sys/fs/cgroup/memory'], native.cgroupId(root)));
      await expect(
        findContainerCgroup(native, { ...shown, root }, example.cgroupPath, example.pid),
      ).rejects.toThrow(
        /^there is no cgroup ".*": .* shows not the node's cgroups but those below one of them.*hostPID: true\)$/,
      );
      await expect(findContainerCgroup(native, tree, '/no/such', 0)).rejects.not.toThrow('hostPID');
    } finally {
      own.stdin.end();
      await once(own, 'close');
      await rmdir(mountPoint);
      await example.remove();
    }
  });

  it('finds a container on this very host', async () => {
    const native = loadNative();
    const tree = await openCgroupTree(native);
    const example = await startExampleContainer(tree);
    try {
      const { path, level, id } = await findContainerCgroup(native, tree, example.cgroupPath, example.pid);
      expect({ path, level }).toEqual({ path: example.cgroupPath, level: 1 });
      expect(id).toBe(native.cgroupId(example.directory));
      await expect(findContainerCgroup(native, tree, 'relative', 0)).rejects.toThrow('"relative"');
    } finally {
      await example.remove();
    }
  });
});

describe('presentCgroupId', () => {
  it('is the id of the directory that is there now, and 0 where there is none', async () => {
    const native = loadNative();
    const tree = await openCgroupTree(native);
    const example = await startExampleContainer(tree);
    const path = example.directory.slice(tree.root.length);
    expect(presentCgroupId(native, tree, path)).toBe(native.cgroupId(example.directory));
    expect(presentCgroupId(native, tree, '')).toBe(0n);
    await example.remove();
    expect(presentCgroupId(native, tree, path)).toBe(0n);
  });

  it('does not take what cannot be read for what is gone', () => {
    const denied = Object.assign(new Error('denied'), { code: 'EACCES', operation: 'cgroupId' });
    const native = {
      cgroupId: () => {
        throw denied;
      },
    };
    expect(() => presentCgroupId(native, { root: '/x' }, '/y')).toThrow(denied);
  });
});
