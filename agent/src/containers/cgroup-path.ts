const PATH_MAX_BYTES = 4_095;
const COMPONENT_MAX_BYTES = 255;
const SLICE_SUFFIX = '.slice';

/** The runtime named a cgroup in no form that has one clear meaning. */
export class CgroupPathError extends Error {
  override readonly name = 'CgroupPathError';
}

/**
 * Turns the cgroup path of a container, as OCI runtimes take it, into a path below the root of the
 * cgroup tree. It begins with `/` and has no `.`, `..` or empty component, so it can be appended to a
 * mount point.
 *
 * Two forms exist: `slice:prefix:name` of the systemd driver, expanded as systemd places its units,
 * and the absolute path of the cgroupfs driver. Anything else throws a {@link CgroupPathError}, also a
 * relative path: the OCI runtime would resolve that below its own cgroup.
 */
export function resolveCgroupPath(cgroupsPath: string): string {
  if (Buffer.byteLength(cgroupsPath) > PATH_MAX_BYTES) {
    throw invalid(cgroupsPath, `it must not be longer than ${PATH_MAX_BYTES} bytes`);
  }
  const path = cgroupsPath.includes('/') ? cgroupsPath : systemdPath(cgroupsPath);
  if (!path.startsWith('/')) throw invalid(cgroupsPath, 'a path must be absolute');
  if (path.includes('\0')) throw invalid(cgroupsPath, 'it must not hold a zero byte');
  if (Buffer.byteLength(path) > PATH_MAX_BYTES) {
    throw invalid(cgroupsPath, `it must not be longer than ${PATH_MAX_BYTES} bytes`);
  }
  const components = path.split('/').filter((component) => component !== '');
  if (components.length === 0) throw invalid(cgroupsPath, 'it must not be the root of the tree');
  for (const component of components) {
    if (component === '.' || component === '..') throw invalid(cgroupsPath, 'it must not hold "." or ".."');
    if (Buffer.byteLength(component) > COMPONENT_MAX_BYTES) {
      throw invalid(cgroupsPath, `no part may be longer than ${COMPONENT_MAX_BYTES} bytes`);
    }
  }
  return `/${components.join('/')}`;
}

function systemdPath(cgroupsPath: string): string {
  const [slice, prefix, name, ...more] = cgroupsPath.split(':');
  if (slice === undefined || prefix === undefined || name === undefined || more.length > 0) {
    throw invalid(cgroupsPath, 'expected "slice:prefix:name" or an absolute path');
  }
  if (name === '') throw invalid(cgroupsPath, 'the name after the second ":" is empty');
  if (name.endsWith(SLICE_SUFFIX)) return `${expandSlice(cgroupsPath, slice)}/${name}`;
  if (prefix === '') throw invalid(cgroupsPath, 'the prefix between the two ":" is empty');
  return `${expandSlice(cgroupsPath, slice)}/${prefix}-${name}.scope`;
}

/** `a-b.slice` lies in `/a.slice/a-b.slice`; `-.slice` is the root, given as an empty path. */
function expandSlice(cgroupsPath: string, slice: string): string {
  if (!slice.endsWith(SLICE_SUFFIX)) throw invalid(cgroupsPath, `the slice must end with "${SLICE_SUFFIX}"`);
  const stem = slice.slice(0, -SLICE_SUFFIX.length);
  if (stem === '-') return '';
  const components = stem.split('-');
  if (components.includes('')) throw invalid(cgroupsPath, 'the slice has an empty part');
  return components.map((_, last) => `/${components.slice(0, last + 1).join('-')}${SLICE_SUFFIX}`).join('');
}

function invalid(cgroupsPath: string, expected: string): CgroupPathError {
  const shown = cgroupsPath.length > 200 ? `${cgroupsPath.slice(0, 200)}…` : cgroupsPath;
  return new CgroupPathError(`cgroup path ${JSON.stringify(shown)} of the container: ${expected}`);
}
