/** A kernel's version as far as features depend on it. */
export interface KernelVersion {
  readonly major: number;
  readonly minor: number;
}

/** Reads uname -r ('6.1.0-57-cloud-amd64', '7.0-rc3'); undefined when it does not begin with two numbers. */
export function parseKernelVersion(release: string): KernelVersion | undefined {
  const [, major, minor] = /^(\d{1,4})\.(\d{1,4})(?![\d])/.exec(release) ?? [];
  return major === undefined || minor === undefined
    ? undefined
    : { major: Number(major), minor: Number(minor) };
}

/** Whether the version is the given one or later. */
export function isAtLeast(version: KernelVersion, major: number, minor: number): boolean {
  return version.major > major || (version.major === major && version.minor >= minor);
}
