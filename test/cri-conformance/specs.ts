/**
 * critest's specs that need no image but one with busybox, by the text that stands before them in its report. Left out are
 * those that pull from a registry, that need nginx or ipcs, or another user's groups in an image, and the one that masks `ls`:
 * Debian's busybox runs it from its shell without looking for a file.
 */
export const SPECS: Readonly<Record<string, readonly string[]>> = {
  'Runtime info runtime should support returning runtime info': [
    'runtime should return version info',
    'runtime should return runtime conditions',
  ],
  'PodSandbox runtime should support basic operations on PodSandbox': [
    'runtime should support running PodSandbox',
    'runtime should support stopping PodSandbox',
    'runtime should support removing PodSandbox',
  ],
  'PodSandbox runtime should support sysctls': [
    'should support safe sysctls',
    'should support unsafe sysctls',
  ],
  'Container runtime should support basic operations on container': [
    'runtime should support creating container',
    'runtime should support starting container',
    'runtime should support stopping container',
    'runtime should support removing created container',
    'runtime should support removing running container',
    'runtime should support removing stopped container',
    'runtime should support execSync',
    'runtime should support listing container stats',
    'runtime should support listing stats for started containers',
    'runtime should support listing stats for three created containers when filter is nil',
    'runtime should support listing stats for containers filtered by labels',
  ],
  'Container runtime should support adding volume and device': [
    'runtime should support starting container with volume',
    'runtime should support starting container with volume when host path is a symlink',
  ],
  'Container runtime should support log': [
    'runtime should support starting container with log',
    'runtime should support reopening container log',
  ],
  'Container Mount Propagation runtime should support mount propagation': [
    "mount with 'rprivate' should not support propagation",
    "mount with 'rshared' should support propagation from host to container and vice versa",
    "mount with 'rslave' should support propagation from host to container",
  ],
  'Container Mount Readonly runtime should support readonly mounts': [
    'should support non-recursive readonly mounts',
  ],
  'Security Context bucket': [
    'runtime should support SupplementalGroups',
    'runtime should support RunAsUser',
    'runtime should support RunAsUserName',
    'runtime should support RunAsGroup',
    'runtime should return error if RunAsGroup is set without RunAsUser',
    'runtime should support that ReadOnlyRootfs is false',
    'runtime should support that ReadOnlyRootfs is true',
    'runtime should support Privileged is true',
    'runtime should support Privileged is false',
    'runtime should support adding capability',
    'runtime should support dropping capability',
    'runtime should support adding ALL capabilities',
    'runtime should support dropping ALL capabilities',
    'runtime should support ReadonlyPaths',
  ],
  'Idempotence StopPodSandbox': [
    'should not return an error if not found',
    'should not return an error if already stopped',
  ],
  'Idempotence RemovePodSandbox': ['should not return an error if not found'],
  'Idempotence StopContainer': [
    'should not return an error if not found',
    'should not return an error if already stopped',
  ],
  'Idempotence RemoveContainer': ['should not return an error if not found'],
};
