import type { Workload } from '@runtime-enforcer/api/workload';

/**
 * What becomes of the execs of a container:
 * `enforced` checked against its policy's list; `learning` reported; `unbound` neither; `waiting` its pod names a
 * policy that is not loaded, so it runs unchecked (or was refused) until that policy comes.
 */
export type ContainerState = 'enforced' | 'learning' | 'unbound' | 'waiting';

/** A container of this node. All texts come from tenants. */
export interface BoundContainer {
  /** Place in the kernel's `containers` map; 0: not in the kernel, as `unbound` and `waiting` are. */
  readonly slot: number;
  /** Which use of the slot this is; together with the slot it is unique on the node. */
  readonly generation: number;
  /** What the slot was given to look lists up by; 0: no policy. */
  readonly policyId: number;
  readonly containerId: string;
  readonly containerName: string;
  readonly podUid: string;
  readonly podName: string;
  readonly namespace: string;
  readonly labels: ReadonlyMap<string, string>;
  /** Empty where the runtime does not tell. */
  readonly image: string;
  readonly workload: Workload;
  readonly cgroupId: bigint;
  /** Below the root of the cgroup tree, beginning with `/`. */
  readonly cgroupPath: string;
  /** Inode number of its mount namespace; 0: not known, then it is not compared. */
  readonly mountNamespace: number;
  /** First process, in the host's pid namespace; 0: not known. */
  readonly pid: number;
  /** `namespace/name` of the policy that the pod's label names. */
  readonly policy?: string;
  /** False for a container that its policy does not name. */
  readonly listed: boolean;
  readonly state: ContainerState;
}
