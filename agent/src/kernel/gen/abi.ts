// Generated from bpf/abi.h by agent/src/kernel/generate-abi.ts: change the header, then run that again.

export const ABI_VERSION = 1;
export const PATH_BYTES_MAX = 4095;
export const LIST_ID_BYTES = 4;
export const KEY_BYTES_MAX_BEFORE_5_11 = 512;
export const COMMAND_BYTES = 16;
export const POLICY_MODE_SHIFT = 32;
export const POLICY_FLAGS_SHIFT = 40;

/** Key sizes of the allow-list tables, ascending; table `allowed_<bytes>`. */
export const ALLOWED_KEY_BYTES = Object.freeze([32, 48, 64, 128, 256, 512, 1024, 4100] as const);

export const Mode = Object.freeze({
  MODE_NONE: 0,
  MODE_MONITOR: 1,
  MODE_PROTECT: 2,
} as const);
export type Mode = (typeof Mode)[keyof typeof Mode];

export const Override = Object.freeze({
  OVERRIDE_NONE: 0,
  OVERRIDE_MONITOR: 1,
  OVERRIDE_OFF: 2,
} as const);
export type Override = (typeof Override)[keyof typeof Override];

export const PolicyFlag = Object.freeze({
  POLICY_OTHER_MOUNT_NAMESPACES_UNCHECKED: 1,
} as const);
export type PolicyFlag = (typeof PolicyFlag)[keyof typeof PolicyFlag];

export const ContainerFlag = Object.freeze({
  CONTAINER_LEARN: 1,
} as const);
export type ContainerFlag = (typeof ContainerFlag)[keyof typeof ContainerFlag];

export const Reason = Object.freeze({
  REASON_NONE: 0,
  REASON_UNLISTED: 1,
  REASON_UNRESOLVED: 2,
  REASON_TOO_LONG: 3,
  REASON_UNLINKED: 4,
  REASON_MEMFD: 5,
  REASON_FOREIGN_MOUNT: 6,
  REASON_OTHER_MOUNT_NAMESPACE: 7,
  REASON_NO_SCRATCH: 8,
  REASON_NO_POLICY: 9,
} as const);
export type Reason = (typeof Reason)[keyof typeof Reason];

export const Origin = Object.freeze({
  ORIGIN_UNKNOWN: 0,
  ORIGIN_ENTRYPOINT: 1,
  ORIGIN_EXEC: 2,
} as const);
export type Origin = (typeof Origin)[keyof typeof Origin];

export const Outcome = Object.freeze({
  OUTCOME_UNTRACKED: 0,
  OUTCOME_UNBOUND: 1,
  OUTCOME_LEARNED: 2,
  OUTCOME_ALLOWED: 3,
  OUTCOME_MONITORED: 4,
  OUTCOME_DENIED: 5,
  OUTCOME_BOOTSTRAP: 6,
  OUTCOME_UNCHECKED: 7,
  OUTCOME_OVERRIDDEN: 8,
  OUTCOME_CHECK_ONLY: 9,
  OUTCOME_ESCAPED_CGROUP: 10,
  OUTCOME_NESTED_CGROUP: 11,
  OUTCOME_CAUGHT_BY_COPY: 12,
  OUTCOME_UNRESOLVED: 13,
  OUTCOME_TOO_LONG: 14,
  OUTCOME_UNLINKED: 15,
  OUTCOME_MEMFD: 16,
  OUTCOME_FOREIGN_MOUNT: 17,
  OUTCOME_OTHER_MOUNT_NAMESPACE: 18,
  OUTCOME_NO_SCRATCH: 19,
  OUTCOME_NO_POLICY: 20,
  OUTCOME_LEARNING_REPEATED: 21,
  OUTCOME_VIOLATION_REPEATED: 22,
  OUTCOME_LEARNING_RING_FULL: 23,
  OUTCOME_VIOLATION_RING_FULL: 24,
  OUTCOME_SEEN_FULL: 25,
  OUTCOME_COUNT: 26,
} as const);
export type Outcome = (typeof Outcome)[keyof typeof Outcome];

export const EventKind = Object.freeze({
  EVENT_LEARNED: 1,
  EVENT_VIOLATION: 2,
} as const);
export type EventKind = (typeof EventKind)[keyof typeof EventKind];

export const CONTAINER_LAYOUT = Object.freeze({
  size: 32,
  offsets: Object.freeze({
    cgroup: 0,
    mount_namespace: 8,
    policy: 12,
    flags: 16,
    generation: 20,
    init_pid: 24,
    reserved: 28,
  } as const),
} as const);

export const CONTAINER_COUNTERS_LAYOUT = Object.freeze({
  size: 16,
  offsets: Object.freeze({
    violations: 0,
    learned: 8,
  } as const),
} as const);

export const SETTINGS_LAYOUT = Object.freeze({
  size: 16,
  offsets: Object.freeze({
    shallowest_level: 0,
    deepest_level: 4,
    override: 8,
    reserved: 12,
  } as const),
} as const);

export const EXEC_EVENT_LAYOUT = Object.freeze({
  size: 96,
  offsets: Object.freeze({
    time_ns: 0,
    cgroup: 8,
    path_hash: 16,
    slot: 24,
    generation: 28,
    policy: 32,
    list: 36,
    pid: 40,
    parent_pid: 44,
    uid: 48,
    path_bytes: 52,
    kind: 56,
    mode: 57,
    reason: 58,
    origin: 59,
    reserved: 60,
    command: 64,
    parent_command: 80,
  } as const),
} as const);

export const SEEN_KEY_LAYOUT = Object.freeze({
  size: 24,
  offsets: Object.freeze({
    path_hash: 0,
    slot: 8,
    generation: 12,
    list: 16,
    mode_and_reason: 20,
  } as const),
} as const);

export const SEEN_VALUE_LAYOUT = Object.freeze({
  size: 24,
  offsets: Object.freeze({
    count: 0,
    first_ns: 8,
    last_ns: 16,
  } as const),
} as const);
