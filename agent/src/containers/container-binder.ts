import type { NriContainer, NriPodSandbox } from '../nri/messages.ts';
import type { BoundContainer } from './bound-container.ts';
import type { RunningProgram } from './running-programs.ts';

export type { BoundContainer } from './bound-container.ts';

/** Why a container of a pod that names a policy cannot be bound to it now. */
export class PolicyNotReadyError extends Error {
  override readonly name = 'PolicyNotReadyError';
  /** `namespace/name`; the name is the label's value, which may be no valid name. */
  readonly policy: string;
  /** `unknown`: no policy of that name. `invalid`: no policy can have that name. `failed`: it could not be loaded. */
  readonly problem: 'unknown' | 'invalid' | 'failed';

  constructor(policy: string, problem: 'unknown' | 'invalid' | 'failed', message: string) {
    super(message);
    this.policy = policy;
    this.problem = problem;
  }
}

export interface BindResult {
  readonly state: 'enforced' | 'learning' | 'unbound';
  readonly container: BoundContainer;
}

/** What a reconcile found. */
export interface ReconcileReport {
  /** Bound now although they already ran: they started while nobody was asked. */
  readonly boundLate: readonly BoundContainer[];
  /** Bound as the agent before had bound them. */
  readonly kept: number;
  /** Their places in the kernel said something else than was written there; they are bound anew. */
  readonly repaired: readonly BoundContainer[];
  /** Entries of the kernel that no container accounted for, and that were taken out. */
  readonly strays: number;
  /** Their policy is not loaded; `error` says why. */
  readonly waiting: readonly { readonly container: BoundContainer; readonly error: PolicyNotReadyError }[];
  /** Could not be bound for another reason. */
  readonly failed: readonly {
    readonly containerId: string;
    readonly containerName: string;
    readonly podName: string;
    readonly namespace: string;
    readonly error: Error;
  }[];
  /** Known before, and gone. */
  readonly gone: number;
}

/** What already ran in a container when it was bound. */
export interface RunningReport {
  readonly container: BoundContainer;
  readonly programs: readonly RunningProgram[];
  /** There were more processes or cgroups than are read. */
  readonly incomplete: boolean;
}

/** Puts containers of the runtime into the kernel's maps. Calls for one container take effect in their order. */
export interface ContainerBinder {
  /**
   * Binds a container before its entrypoint runs.
   *
   * Rejects with a {@link PolicyNotReadyError} (the container then is `waiting`) and, for whatever keeps it from
   * being found or bound, with an Error whose message tells why; the caller refuses or lets it run.
   */
  bind(pod: NriPodSandbox, container: NriContainer): Promise<BindResult>;
  /** Forgets a container; an unknown one is ignored. */
  unbind(containerId: string): Promise<void>;
  /** To be called after each apply or remove of a policy: binds, re-binds and unbinds what it concerns. */
  policyChanged(namespacedName: string): Promise<readonly BoundContainer[]>;
  /** Makes the kernel agree with all that the runtime knows. Never rejects for a single container. */
  reconcile(pods: readonly NriPodSandbox[], containers: readonly NriContainer[]): Promise<ReconcileReport>;
  /** What runs in a container now: for those bound late and those that are learned. */
  running(container: BoundContainer): Promise<RunningReport>;
  containers(): Iterable<BoundContainer>;
  container(containerId: string): BoundContainer | undefined;
  /** For records: also containers that ended lately. */
  lookup(slot: number, generation: number): BoundContainer | undefined;
}
