import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runHostCommand } from './host-command.ts';

export const DEBIAN_KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const SECURITY_SUITE = '-security';

/** The Debian mirror; `RUNTIME_ENFORCER_DEBIAN_MIRROR` names another one. */
export function debianMirror(): string {
  return process.env['RUNTIME_ENFORCER_DEBIAN_MIRROR'] ?? 'http://deb.debian.org/debian';
}

/** apt that knows other suites than the host's and never touches the host's state. */
export interface PrivateApt {
  /** @returns what `apt-cache ARGS` prints */
  query(...args: string[]): Promise<string>;
  /** Downloads packages (`name=version`) and unpacks them into one directory, without running their scripts. */
  unpack(packages: readonly string[], directory: string): Promise<void>;
  /** The same, but each package into a directory of its own that has the package's name. */
  unpackEach(packages: readonly string[], directory: string): Promise<readonly DebianPackage[]>;
}

/** A package as it was unpacked. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  /** Its fields, as dpkg keeps them. */
  readonly control: string;
}

/**
 * Makes an apt state in an empty directory and fetches the package lists of the suites.
 *
 * @param architecture of the packages, as Debian names it; the host's when left out
 * @throws HostCommandError when the mirror cannot be reached or a signature does not hold
 */
export async function openPrivateApt(
  directory: string,
  suites: readonly string[],
  architecture?: string,
): Promise<PrivateApt> {
  for (const name of ['lists/partial', 'cache/archives/partial', 'debs']) {
    await mkdir(join(directory, name), { recursive: true });
  }
  const sources = join(directory, 'sources.list');
  await writeFile(sources, suites.map(sourceLine).join(''));
  const options = aptOptions({
    'Dir::Etc::SourceList': sources,
    'Dir::Etc::SourceParts': '-',
    'Dir::State::Lists': join(directory, 'lists'),
    'Dir::Cache': join(directory, 'cache'),
    'APT::Sandbox::User': 'root',
    // The lists of old and of not yet released suites outlive their dates.
    'Acquire::Check-Valid-Until': 'false',
    'Acquire::Languages': 'none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    'Acquire::Retries': '3',
    ...(architecture !== undefined && {
      'APT::Architecture': architecture,
      'APT::Architectures': architecture,
      // What the host has installed is of another architecture, and does not matter.
      'Dir::State::Status': '/dev/null',
    }),
  });
  const debs = join(directory, 'debs');
  const download = async (packages: readonly string[]): Promise<readonly string[]> => {
    await runHostCommand(['apt-get', '-qq', ...options, 'download', ...packages], { cwd: debs });
    return (await readdir(debs)).map((name) => join(debs, name));
  };
  await runHostCommand(['apt-get', '-qq', ...options, 'update']);
  return {
    query: async (...args) => await runHostCommand(['apt-cache', ...options, ...args]),
    unpack: async (packages, target) => {
      for (const deb of await download(packages)) await runHostCommand(['dpkg', '-x', deb, target]);
    },
    unpackEach: async (packages, parent) => {
      const unpacked: DebianPackage[] = [];
      for (const deb of await download(packages)) {
        const control = await runHostCommand(['dpkg-deb', '--field', deb]);
        const name = controlField(control, 'Package');
        await runHostCommand(['dpkg', '-x', deb, join(parent, name)]);
        unpacked.push({ name, version: controlField(control, 'Version'), control });
      }
      return unpacked;
    },
  };
}

function controlField(control: string, name: string): string {
  const value = new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1];
  if (value === undefined) throw new Error(`a Debian package has no field ${name}:\n${control}`);
  return value;
}

function sourceLine(suite: string): string {
  const mirror = suite.endsWith(SECURITY_SUITE) ? `${debianMirror()}-security` : debianMirror();
  return `deb [signed-by=${DEBIAN_KEYRING}] ${mirror} ${suite} main\n`;
}

function aptOptions(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** Makes a Debian root file system (a directory, or a tar when the name ends in `.tar`). */
export async function bootstrapDebian(root: {
  suite: string;
  variant: 'essential' | 'minbase';
  packages: readonly string[];
  target: string;
}): Promise<void> {
  await runHostCommand([
    'mmdebstrap',
    '--quiet',
    '--mode=root',
    `--variant=${root.variant}`,
    '--aptopt=Acquire::Check-Valid-Until "false"',
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=Apt::Install-Recommends "false"',
    '--dpkgopt=path-exclude=/usr/share/doc/*',
    '--dpkgopt=path-exclude=/usr/share/man/*',
    '--dpkgopt=path-exclude=/usr/share/locale/*',
    `--include=${root.packages.join(',')}`,
    root.suite,
    root.target,
    `deb [signed-by=${DEBIAN_KEYRING}] ${debianMirror()} ${root.suite} main`,
  ]);
}
