import { createHash } from 'node:crypto';
import type { OtherMountNamespaces } from './container-rules.ts';
import type { WorkloadPolicySpec } from './workload-policy.ts';

/** Stands for the containers that the rules do not name, where these may start nothing. No container has this name. */
const UNLISTED = '*';

/**
 * SHA-256, in hexadecimal, of the containers and their lists: what an agent reports of a policy that its kernel holds
 * whole.
 */
export function policyDigest({
  rulesByContainer,
  unlistedContainers,
}: Pick<WorkloadPolicySpec, 'rulesByContainer' | 'unlistedContainers'>): string {
  const said = Array.from(rulesByContainer, ([container, { executables }]): RuleDigest => [
    container,
    executables.otherMountNamespaces,
    listDigest(executables.allowed),
  ]);
  if (unlistedContainers === 'deny') said.push([UNLISTED, 'deny', listDigest([])]);
  return sha256(JSON.stringify(said.sort(([one], [other]) => (one < other ? -1 : 1))));
}

type RuleDigest = readonly [container: string, other: OtherMountNamespaces, list: string];

/** The text form of a path is one to one with its bytes, and holds no NUL. */
function listDigest(paths: readonly string[]): string {
  return sha256([...new Set(paths)].sort().join('\0'));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
