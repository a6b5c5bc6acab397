import type { ExecutablePath } from '@runtime-enforcer/api/executable-path';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';

/** Paths that are remembered; beyond it sharing begins anew. */
const MAX_PATHS = 100_000;

/** Makes policies that list the same paths hold them once. */
export interface PathSharing {
  shared(policy: WorkloadPolicy): WorkloadPolicy;
}

/**
 * A node loads every policy, and most list the same few thousand paths. A path cut out of a file's text would also
 * keep that whole text in memory.
 */
export function createPathSharing(): PathSharing {
  let known = new Map<string, ExecutablePath>();

  const share = (path: ExecutablePath): ExecutablePath => {
    const first = known.get(path);
    if (first !== undefined) return first;
    if (known.size >= MAX_PATHS) known = new Map();
    const own = Buffer.from(path).toString() as ExecutablePath;
    known.set(own, own);
    return own;
  };

  return {
    shared(policy) {
      const rulesByContainer = new Map(
        Array.from(policy.spec.rulesByContainer, ([container, { executables }]) => [
          Buffer.from(container).toString(),
          { executables: { ...executables, allowed: executables.allowed.map(share) } },
        ]),
      );
      return { ...policy, spec: { ...policy.spec, rulesByContainer } };
    },
  };
}
