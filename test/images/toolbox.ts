import type { TarEntry } from '../../images/tar.ts';

/** Where the guest programs stand in the toolbox image. */
export const TEST_PROGRAMS = '/opt/test';

/** A script whose interpreter is the image's shell; it prints `greeted`. */
export const SCRIPT = '/usr/local/bin/greet';

/** A symbolic link to /usr/bin/ls, of the same name: busybox goes by it. */
export const SYMLINK = '/usr/local/bin/ls';

/**
 * Busybox's applets as hard links, so that each has a path of its own: the kernel resolves a symbolic link to busybox
 * itself. Busybox's shell runs its applets in itself when they are named without a slash, so scripts in tests name
 * whole paths.
 */
const APPLETS: Readonly<Record<string, readonly string[]>> = {
  bin: ['sh'],
  'usr/bin': [
    ...[
      'awk',
      'cat',
      'chmod',
      'chroot',
      'cp',
      'date',
      'dd',
      'env',
      'find',
      'grep',
      'head',
      'id',
      'kill',
      'ln',
      'ls',
    ],
    ...[
      'mkdir',
      'mv',
      'nsenter',
      'printf',
      'ps',
      'readlink',
      'rm',
      'rmdir',
      'sleep',
      'stat',
      'tail',
      'touch',
      'true',
    ],
    ...['uname', 'unshare', 'wc', 'whoami', 'xargs'],
  ],
  'usr/sbin': ['chroot'],
};

const DIRECTORIES = [
  ...[
    'bin',
    'dev',
    'etc',
    'home',
    'home/tenant',
    'opt',
    'opt/test',
    'proc',
    'root',
    'run',
    'sys',
    'usr',
    'usr/bin',
  ],
  ...['usr/local', 'usr/local/bin', 'usr/sbin', 'var'],
];

/** The entries of the toolbox image: busybox under many names, the guest programs, and a user beside root. */
export function toolboxLayer(
  busybox: Uint8Array,
  programs: ReadonlyMap<string, Uint8Array>,
): readonly TarEntry[] {
  const file = (path: string, mode: number, content: Uint8Array | string): TarEntry => ({
    kind: 'file',
    path,
    mode,
    content: typeof content === 'string' ? Buffer.from(content) : content,
  });
  return [
    ...DIRECTORIES.map((path): TarEntry => ({ kind: 'directory', path, mode: 0o755 })),
    { kind: 'directory', path: 'tmp', mode: 0o1777 },
    file(
      'etc/passwd',
      0o644,
      'root:x:0:0:root:/root:/bin/sh\ntenant:x:1000:1000:tenant:/home/tenant:/bin/sh\n',
    ),
    file('etc/group', 0o644, 'root:x:0:\ntenant:x:1000:\n'),
    file('bin/busybox', 0o755, busybox),
    ...Object.entries(APPLETS).flatMap(([directory, names]) =>
      names.map((name): TarEntry => ({
        kind: 'hardlink',
        path: `${directory}/${name}`,
        target: 'bin/busybox',
      })),
    ),
    file(SCRIPT.slice(1), 0o755, '#!/bin/sh\necho greeted\n'),
    { kind: 'symlink', path: SYMLINK.slice(1), target: '/usr/bin/ls' },
    ...[...programs].map(([name, content]) => file(`${TEST_PROGRAMS.slice(1)}/${name}`, 0o755, content)),
  ];
}
