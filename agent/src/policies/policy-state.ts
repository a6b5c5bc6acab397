import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';

/**
 * What the kernel of this node holds of a policy, as read back from it.
 * `ready`: all of it. `failed`: not what was asked; `message` says why, and an earlier version stays in force if
 * there was one. `retained`: the policy is gone, its containers keep its last list until they end.
 */
export interface PolicyState {
  readonly state: 'ready' | 'failed' | 'retained';
  readonly mode: PolicyMode;
  /** Set for `failed`: names the path, the limit or the flag. */
  readonly message?: string;
  /** Entries in the kernel, over all containers of the policy. */
  readonly paths: number;
  /** SHA-256, in hexadecimal, of the containers and their lists; equal for equal rules on every node. */
  readonly digest: string;
}
