import type { NodeObservation } from '@runtime-enforcer/api/node-observation';
import type { Violation } from '@runtime-enforcer/api/violation';
import type { PolicyMode } from '@runtime-enforcer/api/workload-policy';

/** A place in one sequence of changes; see `Cursor` in proto/agent.proto. */
export interface Cursor {
  readonly incarnation: string;
  readonly sequence: number;
}

/** Before the first change of any sequence. */
export const NO_CURSOR: Cursor = { incarnation: '', sequence: 0 };

export interface WatchCursors {
  readonly policies: Cursor;
  readonly violations: Cursor;
  readonly observations: Cursor;
}

/** What a node's agent says of itself and of the enforcement there. */
export interface NodeState {
  readonly nodeName: string;
  readonly agentVersion: string;
  readonly startedAt: string;
  /** How execs are checked: `lsm`, `fmod_ret` or `fmod_ret+copies`. */
  readonly attachment: string;
  readonly kernel: string;
  readonly attached: boolean;
  /** Why enforcement is weaker than it should be, and what helps; empty if it is not. */
  readonly degraded: string;
  /** `none`, or what somebody switched on this node by hand. */
  readonly override: string;
  readonly runtimeConnected: boolean;
  readonly policiesLoaded: boolean;
}

/** What a node's kernel holds of a policy. `unknown` from an agent that is newer than its reader. */
export interface ReportedPolicy {
  readonly state: 'ready' | 'error' | 'retained' | 'unknown';
  readonly mode: PolicyMode | 'unknown';
  /** Why it is in error; empty if it is not. */
  readonly message: string;
  /** Of the containers and their lists, as read back from the kernel; empty when there is nothing there. */
  readonly digest: string;
  readonly paths: number;
}

/** A violation, or where `overflow` is true the number of those of a container that have no record of their own. */
export type ReportedViolation = Violation & { readonly overflow?: boolean };

/** An entry of a cumulative sequence: what `value` counts minus `previousCount` is new. */
export interface ReportedEntry<T> {
  readonly sequence: number;
  readonly value: T;
  readonly previousCount: number;
}

export interface ReportedPage<T> {
  /** Of the last entry. */
  readonly cursor: Cursor;
  /** The sequence is another one than the reader's cursor was of. */
  readonly resync: boolean;
  readonly entries: readonly ReportedEntry<T>[];
  readonly more: boolean;
  /** Entries that were left out because they break the bounds of `api/`: none from an agent that is in order. */
  readonly refused: number;
  /** Why, for the first of them. */
  readonly refusals: readonly string[];
}

export interface ReportedPolicies {
  readonly cursor: Cursor;
  /** Begins with the first policy: what the reader knew before is void once a page without `more` has come. */
  readonly resync: boolean;
  /** By `namespace/name`. */
  readonly policies: ReadonlyMap<string, ReportedPolicy>;
  readonly removed: readonly string[];
  readonly more: boolean;
}

/** What changed on a node since the report before. With nothing in it, it only tells that the agent lives. */
export interface NodeReport {
  readonly node?: NodeState;
  readonly policies?: ReportedPolicies;
  readonly violations?: ReportedPage<ReportedViolation>;
  readonly observations?: ReportedPage<NodeObservation>;
}

export type ReportedContainerState = 'enforced' | 'learning' | 'unbound' | 'waiting' | 'unknown';

export interface ReportedContainer {
  readonly id: string;
  readonly name: string;
  readonly cgroupId: bigint;
  readonly state: ReportedContainerState;
  /** `namespace/name` of the policy that the pod's label names; empty if it names none. */
  readonly policyName: string;
  readonly listed: boolean;
  readonly image: string;
  /** In the node's pid namespace; 0: not known. */
  readonly pid: number;
  /** What the agent has written into the kernel for it, see {@link ReportedBinding}; slot 0: nothing. */
  readonly slot: number;
  readonly generation: number;
  readonly mountNamespace: number;
  readonly policyId: number;
  /** Id that the directory of its cgroup had when the agent was asked; 0: there was none. */
  readonly presentCgroupId: bigint;
}

/** A cgroup for which a node's kernel holds a place, or a place that says to be a cgroup's. */
export interface ReportedBinding {
  readonly cgroupId: bigint;
  readonly slot: number;
  /** Whether the map of cgroups leads to this place. */
  readonly indexed: boolean;
  /** Of which cgroup the place says to be; 0: of none. */
  readonly slotCgroupId: bigint;
  readonly generation: number;
  /** 0: not compared. */
  readonly mountNamespace: number;
  /** 0: no policy. */
  readonly policyId: number;
  readonly learning: boolean;
  /** Of the policy id; `unknown` where the kernel has no list for it, so that nothing may start. */
  readonly mode: PolicyMode | 'unknown';
  /** Whether the map of mount namespaces leads to this place, or is not to: the host's, or none. */
  readonly namespaceIndexed: boolean;
}

/** A pod as its node's agent knows it. All texts come from tenants. */
export interface ReportedPod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly workloadName: string;
  readonly workloadKind: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly containers: readonly ReportedContainer[];
  /** Labels and containers that there was no room for. */
  readonly omitted: number;
}
