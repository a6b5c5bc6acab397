import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Architecture } from './architecture.ts';
import type { UnpackedPackages } from './debian-packages.ts';
import type { NodeRuntime } from './node-runtime.ts';
import { packageFiles, packagesOf } from './package-files.ts';
import { type PackagedFile, sharedLibraries } from './shared-libraries.ts';
import { type TarEntry, withParents } from './tar.ts';

/** Where Node stands in an image. */
export const NODE_IN_IMAGE = '/usr/local/bin/node';
export const CA_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
/** The user and group of programs that need no rights. */
export const NOBODY_ID = 65_532;

const MOZILLA_CERTIFICATES = 'usr/share/ca-certificates/mozilla';
const COMMON_LICENSES = 'usr/share/common-licenses';
const DIRECTORIES = ['dev', 'etc', 'proc', 'run', 'sys', 'usr/lib', 'usr/lib64', 'var'];
const LINKS = { lib: 'usr/lib', lib64: 'usr/lib64', 'var/run': '/run' };
const TEXT_FILES = {
  'etc/passwd': `root:x:0:0:root:/root:/nonexistent\nnonroot:x:${NOBODY_ID}:${NOBODY_ID}:nonroot:/nonexistent:/nonexistent\n`,
  'etc/group': `root:x:0:\nnonroot:x:${NOBODY_ID}:\n`,
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

/** What a part of an image is made of, and the Debian packages that it is from. */
export interface ImagePart {
  readonly entries: readonly TarEntry[];
  readonly packages: readonly string[];
}

/** What all images share: the libraries that Node loads, users, certificates of public authorities. No shell. */
export async function baseLayer(
  node: NodeRuntime,
  architecture: Architecture,
  packages: UnpackedPackages,
): Promise<ImagePart> {
  const files: readonly PackagedFile[] = [
    { packageName: 'base-files', path: 'etc/os-release' },
    ...(await commonLicenses(packages)),
    ...(await sharedLibraries([node.program], architecture, packages)),
  ];
  const entries: readonly TarEntry[] = [
    ...DIRECTORIES.map((path): TarEntry => ({ kind: 'directory', path, mode: 0o755 })),
    { kind: 'directory', path: 'root', mode: 0o700 },
    { kind: 'directory', path: 'tmp', mode: 0o1777 },
    ...Object.entries(LINKS).map(([path, target]): TarEntry => ({ kind: 'symlink', path, target })),
    ...Object.entries(TEXT_FILES).map(([path, text]) => file(path, Buffer.from(text))),
    file(CA_CERTIFICATES.slice(1), await authorities(packages)),
    ...(await packageFiles([...files, CERTIFICATES_NOTICE], packages)),
  ];
  return { entries: withParents(entries), packages: packagesOf([...files, CERTIFICATES_NOTICE]) };
}

/** Node, without npm. */
export async function nodeLayer({ program, license }: NodeRuntime): Promise<readonly TarEntry[]> {
  return withParents([
    { ...file(NODE_IN_IMAGE.slice(1), await readFile(program)), mode: 0o755 },
    file('usr/share/doc/node/LICENSE', await readFile(license)),
  ]);
}

/** A file of the package, so that its licence and version come along. */
const CERTIFICATES_NOTICE: PackagedFile = {
  packageName: 'ca-certificates',
  path: 'usr/share/doc/ca-certificates/README.Debian',
};

/** The texts that Debian's notices of licences refer to. */
async function commonLicenses(packages: UnpackedPackages): Promise<readonly PackagedFile[]> {
  const names = await readdir(join(packages.directoryOf('base-files'), COMMON_LICENSES));
  return names.toSorted().map((name) => ({ packageName: 'base-files', path: `${COMMON_LICENSES}/${name}` }));
}

/** All certificates in one file, as Debian's update-ca-certificates makes it. */
async function authorities(packages: UnpackedPackages): Promise<Buffer> {
  const directory = join(packages.directoryOf('ca-certificates'), MOZILLA_CERTIFICATES);
  const texts: string[] = [];
  for (const name of (await readdir(directory)).toSorted()) {
    texts.push(`${(await readFile(join(directory, name), 'utf8')).trimEnd()}\n`);
  }
  return Buffer.from(texts.join(''));
}

function file(path: string, content: Buffer): Extract<TarEntry, { kind: 'file' }> {
  return { kind: 'file', path, mode: 0o644, content };
}
