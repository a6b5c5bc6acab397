import { randomBytes } from 'node:crypto';
import { ALLOWED_KEY_BYTES, KEY_BYTES_MAX_BEFORE_5_11, LIST_ID_BYTES, PATH_BYTES_MAX } from './gen/abi.ts';

/** Paths of up to 28 bytes that fit, unless told otherwise. */
export const DEFAULT_CAPACITY = 65_536;
export const MAX_CAPACITY = 16_777_216;
/** Smallest capacity of any table. */
const TABLE_ENTRIES_MIN = 64;
/** Which part of the capacity a table has: the longer the paths, the rarer. */
const SHARES: ReadonlyMap<number, number> = new Map([
  [32, 1],
  [48, 2],
  [64, 2],
  [128, 4],
  [256, 16],
  [512, 32],
]);
const SHARE_OF_LONGEST = 64;
/** A policy and container takes one; with four paths of up to 28 bytes each the table is full. */
const PATHS_PER_POLICY_ID = 4;
/** Containers of one node, those that just ended included. A power of two, which the program relies on. */
const CONTAINERS_MAX = 4_096;

const SCRATCHES_BY_PROGRAM: ReadonlyMap<string, number> = new Map([
  ['check_lsm', 8],
  ['check_fmod_ret', 1],
  ['check_copy', 1],
  ['check_late_copy', 1],
]);

/** What is known of the node before the program is loaded. */
export interface LoadFacts {
  /** Inode number of the host's mount namespace. */
  readonly hostMountNamespace: number;
  /** Index of the cgroup v1 hierarchy to read; -1 with cgroup v2. */
  readonly cgroupSubsystem: number;
  /** Whether keys may have more than 512 bytes (5.11 and later). */
  readonly largeKeys: boolean;
  /** Whether the kernel has bpf_rdonly_cast (6.2 and later). */
  readonly typedCast: boolean;
}

/** How the object is to be loaded. */
export interface LoadPlan {
  readonly programs: readonly string[];
  /** All constants but the seed, which differs at each load. */
  readonly constants: Readonly<Record<string, number | boolean>>;
  readonly maxEntries: Readonly<Record<string, number>>;
  readonly keySizes: Readonly<Record<string, number>>;
  /** Key sizes of the tables that can hold a path here. */
  readonly usableKeyBytes: readonly number[];
  readonly pathBytesMax: number;
}

/** Decides sizes and constants. `capacity`: paths of up to 28 bytes. */
export function planLoad(facts: LoadFacts, programs: readonly string[], capacity: number): LoadPlan {
  if (!Number.isInteger(capacity) || capacity < TABLE_ENTRIES_MIN || capacity > MAX_CAPACITY) {
    throw new RangeError(
      `capacity ${capacity}: expected a whole number of paths from ${TABLE_ENTRIES_MIN} to ${MAX_CAPACITY}`,
    );
  }
  const scratches = programs.map((program) => SCRATCHES_BY_PROGRAM.get(program) ?? 1);
  const maxEntries: Record<string, number> = {
    containers: CONTAINERS_MAX,
    container_counters: CONTAINERS_MAX,
    cgroups: CONTAINERS_MAX,
    mount_namespaces: CONTAINERS_MAX,
    policies: Math.max(CONTAINERS_MAX, Math.ceil(capacity / PATHS_PER_POLICY_ID)),
    scratches: Math.max(
      1,
      scratches.reduce((sum, count) => sum + count, 0),
    ),
  };
  const keySizes: Record<string, number> = {};
  const usableKeyBytes = ALLOWED_KEY_BYTES.filter(
    (bytes) => facts.largeKeys || bytes <= KEY_BYTES_MAX_BEFORE_5_11,
  );
  for (const bytes of ALLOWED_KEY_BYTES) {
    const usable = usableKeyBytes.includes(bytes);
    const share = Math.floor(capacity / (SHARES.get(bytes) ?? SHARE_OF_LONGEST));
    maxEntries[allowedTableName(bytes)] = usable ? Math.max(TABLE_ENTRIES_MIN, share) : 1;
    // The program names every table, so one that this kernel refuses is made as small as it must be.
    if (!usable) keySizes[allowedTableName(bytes)] = KEY_BYTES_MAX_BEFORE_5_11;
  }
  const pathBytesMax = Math.min(PATH_BYTES_MAX, Math.max(...usableKeyBytes) - LIST_ID_BYTES);
  return {
    programs,
    constants: {
      host_mount_namespace: facts.hostMountNamespace,
      cgroup_subsystem: facts.cgroupSubsystem,
      path_bytes_max: pathBytesMax,
      has_typed_cast: facts.typedCast,
      slot_mask: CONTAINERS_MAX - 1,
    },
    maxEntries,
    keySizes,
    usableKeyBytes,
    pathBytesMax,
  };
}

/** Name of a table of allowed paths in the kernel object. */
export function allowedTableName(keyBytes: number): string {
  return `allowed_${keyBytes}`;
}

/** A seed that no tenant knows, so that none can make two of its paths share one count on purpose. */
export function randomHashSeed(): bigint {
  return randomBytes(8).readBigUInt64LE();
}
