import { describe, expect, it } from 'vitest';
import { loadNative } from '../kernel/native.ts';
import { cgroupIn, findContainerCgroup, memorySubsystem, openCgroupTree } from './cgroup-tree.ts';
import { startExampleContainer } from './container-example.ts';

const CGROUP2 = 0x63677270;
const TMPFS = 0x01021994;

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
