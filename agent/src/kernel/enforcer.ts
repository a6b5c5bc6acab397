import type { ViolationReason } from '@runtime-enforcer/api/violation';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { KernelMaps } from './maps.ts';
import type { NodeSettings } from './node-settings.ts';

/** Where the program is attached, and why there. */
export interface EnforcerAttachment {
  readonly programs: readonly string[];
  readonly kind: 'lsm' | 'fmod_ret' | 'fmod_ret+copies';
  readonly reason: string;
  /** Set where an exec can pass unchecked: what it means and what to do. */
  readonly degraded?: string;
  readonly kernel: string;
  readonly pathBytesMax: number;
  /**
   * `fresh`: nothing was on this node. `adopted`: maps and links of the agent before. `replaced`: its maps with a
   * new program, or new maps throughout; those take effect at {@link KernelEnforcer.commit}.
   */
  readonly adopted: 'fresh' | 'adopted' | 'replaced';
}

/** What an operator at the node put above every policy's mode: `monitor` denies nothing, `off` checks nothing. */
export type Override = 'none' | 'monitor' | 'off';

export const OVERRIDES = ['none', 'monitor', 'off'] as const satisfies readonly Override[];

/** Who started a program: see `ExecOrigin` of the API; the kernel tells these three. */
export type KernelOrigin = 'entrypoint' | 'exec' | 'unknown';

/** What tells one kind of record from another, equal in an event and in the count of its repeats. */
export type RecordKey = string & { readonly recordKey: unique symbol };

/** The first exec of its kind. Repeats are counted, see {@link SeenEntry}. */
export interface ExecEvent {
  readonly kind: 'learned' | 'violation';
  readonly key: RecordKey;
  /** Unix epoch, in milliseconds. */
  readonly timeMs: number;
  readonly slot: number;
  readonly generation: number;
  readonly cgroupId: bigint;
  /** Undefined: it ended so long ago, or under an agent before, that its name is not known. */
  readonly container: BoundContainer | undefined;
  /** As the kernel read it, for `violation` not always a path that a list could hold. A copy. */
  readonly path: Uint8Array;
  /** Undefined for `learned`. */
  readonly mode: 'monitor' | 'protect' | undefined;
  /** Undefined for `learned`. */
  readonly reason: ViolationReason | undefined;
  readonly origin: KernelOrigin;
  /** In the host's pid namespace, as `parentPid`. */
  readonly pid: number;
  readonly parentPid: number;
  readonly uid: number;
  /** Command names are chosen by tenants; unprintable bytes are written `\xHH`. */
  readonly command: string;
  readonly parentCommand: string;
}

/** How often one kind of record has occurred, the first time included. */
export interface SeenEntry {
  readonly key: RecordKey;
  readonly slot: number;
  readonly generation: number;
  readonly container: BoundContainer | undefined;
  readonly pathHash: bigint;
  readonly mode: 'monitor' | 'protect' | undefined;
  readonly reason: ViolationReason | undefined;
  readonly count: bigint;
  /** Unix epoch, in milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Finds the container that a record is about. */
export type ContainerLookup = (slot: number, generation: number) => BoundContainer | undefined;

/** The program in the kernel, its maps, and who owns them. */
export interface KernelEnforcer {
  readonly attachment: EnforcerAttachment;
  readonly maps: KernelMaps;
  /** Exact counts since the maps were made, by outcome name such as `denied`. Rejects with a NativeError. */
  outcomes(): Promise<Readonly<Record<string, bigint>>>;
  /** How often the kernel skipped a program of ours; on `fmod_ret` each may be an exec that passed. */
  recursionMisses(): bigint;
  /** Exact totals of a slot's present container, whatever became of the records. */
  containerTotals(slot: number): { readonly violations: bigint; readonly learned: bigint };
  /**
   * The kinds of records whose count changed since the last call, and perhaps others; the first call tells all. The
   * least recently used of more than the map holds are forgotten.
   */
  seen(lookup: ContainerLookup): Promise<readonly SeenEntry[]>;
  /** To be called once, when containers can be looked up. Records that waited in the kernel come first. */
  startEvents(lookup: ContainerLookup, onBatch: (events: readonly ExecEvent[]) => void): void;
  /** Whether the links are still there: somebody at the node may have released it. */
  attached(): Promise<boolean>;
  readonly settings: NodeSettings;
  override(): Override;
  setOverride(override: Override): void;
  /** True until {@link commit} where new maps replace old ones that still decide. */
  readonly pending: boolean;
  /**
   * Lets new maps take effect, after policies and containers were filled in, and removes the old ones: the new
   * program is attached before the old one is detached. Does nothing unless `pending`.
   */
  commit(): Promise<void>;
  /** `release` takes everything off this node; otherwise what is pinned stays and goes on deciding. */
  stop(options: { readonly release: boolean }): Promise<void>;
}
