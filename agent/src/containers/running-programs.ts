import type { ExecutableKind } from '@runtime-enforcer/api/executable-path';

/** The executable of one process of a container. */
export interface RunningProgram {
  /** In the host's pid namespace. */
  readonly pid: number;
  /** From the top of the mount tree, as the kernel program builds it; without the marks of `kind`. */
  readonly path: Uint8Array;
  readonly kind: ExecutableKind;
  /** The process is not in the container's mount namespace: the path names a file in its own. */
  readonly otherMountNamespace: boolean;
}
