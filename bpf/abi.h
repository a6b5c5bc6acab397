/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What the kernel program and the agent agree on: map keys and values, event records, outcomes and the
 * sizes of the allow-list tables. agent/src/kernel/gen/abi.ts is generated from this file, so it keeps to
 * #define NAME number, enums, and structs of fixed-width fields. Every change of a layout that a running
 * agent may have pinned raises ABI_VERSION.
 */
#ifndef RUNTIME_ENFORCER_ABI_H
#define RUNTIME_ENFORCER_ABI_H

#ifndef ABI_VERSION
#define ABI_VERSION 1
#endif

/* A path is 2 to PATH_BYTES_MAX bytes; the key of an allow-list entry is a list id and the zero-padded path.
 */
#define PATH_BYTES_MAX 4095
#define LIST_ID_BYTES 4

/*
 * The key sizes of the allow-list tables. A path goes into the smallest table that holds it behind its list
 * id. This is the only place that says so: the program builds its tables and its choice from this list, the
 * agent its own from the generated copy. Multiples of four, because the kernel hashes those by words.
 */
#define FOR_EACH_ALLOWED_KEY_BYTES(DO) DO(32) DO(48) DO(64) DO(128) DO(256) DO(512) DO(1024) DO(4100)

/* Below 5.11 the kernel refuses hash keys of more than this. */
#define KEY_BYTES_MAX_BEFORE_5_11 512

#define COMMAND_BYTES 16

enum mode {
	MODE_NONE = 0,
	MODE_MONITOR = 1,
	MODE_PROTECT = 2,
};

/* settings.override: what an operator at the node put above every policy's mode. */
enum override {
	OVERRIDE_NONE = 0,
	OVERRIDE_MONITOR = 1,
	OVERRIDE_OFF = 2,
};

/* One 64-bit word per policy and container: list id in bits 0-31, mode in bits 32-39, flags from bit 40. */
#define POLICY_MODE_SHIFT 32
#define POLICY_FLAGS_SHIFT 40
enum policy_flag {
	POLICY_OTHER_MOUNT_NAMESPACES_UNCHECKED = 1,
};

enum container_flag {
	CONTAINER_LEARN = 1,
};

/* containers[slot]. A slot is written whole before a cgroup points to it, and never changed while one does.
 */
struct container {
	__u64 cgroup;
	__u32 mount_namespace; /* inode number of the namespace; 0: not known, then it is not compared */
	__u32 policy;	       /* index into policies; 0: none */
	__u32 flags;	       /* enum container_flag */
	__u32 generation;      /* raised at each use of the slot */
	__u32 init_pid;	       /* first process of the container, in the host's pid namespace; 0: not known */
	__u32 reserved;
};

/* Exact totals of a slot, whatever becomes of the records. Only the program writes them. */
struct container_counters {
	__u64 violations;
	__u64 learned;
};

struct settings {
	__u32
	    shallowest_level; /* cgroup levels at which containers are bound; shallowest > deepest: none is */
	__u32 deepest_level;
	__u32 override; /* enum override */
	__u32 reserved;
};

/* Why an exec was not simply looked up and found. */
enum reason {
	REASON_NONE = 0,
	REASON_UNLISTED = 1,
	REASON_UNRESOLVED = 2,
	REASON_TOO_LONG = 3,
	REASON_UNLINKED = 4,
	REASON_MEMFD = 5,
	REASON_FOREIGN_MOUNT = 6,
	REASON_OTHER_MOUNT_NAMESPACE = 7,
	REASON_NO_SCRATCH = 8,
	REASON_NO_POLICY = 9,
};

/* Who started the program: decided by the ancestry of the task, see origin.h. */
enum origin {
	ORIGIN_UNKNOWN = 0,
	ORIGIN_ENTRYPOINT = 1,
	ORIGIN_EXEC = 2,
};

/* Index into outcomes. The first group adds up to the execs that the program saw; the rest tell more. */
enum outcome {
	/* exactly one of these per exec */
	OUTCOME_UNTRACKED = 0,
	OUTCOME_UNBOUND = 1,
	OUTCOME_LEARNED = 2,
	OUTCOME_ALLOWED = 3,
	OUTCOME_MONITORED = 4,
	OUTCOME_DENIED = 5,
	OUTCOME_BOOTSTRAP = 6,
	OUTCOME_UNCHECKED = 7,
	OUTCOME_OVERRIDDEN = 8,
	OUTCOME_CHECK_ONLY = 9,
	/* how it came about */
	OUTCOME_ESCAPED_CGROUP = 10,
	OUTCOME_NESTED_CGROUP = 11,
	OUTCOME_CAUGHT_BY_COPY = 12,
	/* one per reason, for containers with a policy and for learning alike */
	OUTCOME_UNRESOLVED = 13,
	OUTCOME_TOO_LONG = 14,
	OUTCOME_UNLINKED = 15,
	OUTCOME_MEMFD = 16,
	OUTCOME_FOREIGN_MOUNT = 17,
	OUTCOME_OTHER_MOUNT_NAMESPACE = 18,
	OUTCOME_NO_SCRATCH = 19,
	OUTCOME_NO_POLICY = 20,
	/* records that did not reach the agent one by one */
	OUTCOME_LEARNING_REPEATED = 21,
	OUTCOME_VIOLATION_REPEATED = 22,
	OUTCOME_LEARNING_RING_FULL = 23,
	OUTCOME_VIOLATION_RING_FULL = 24,
	OUTCOME_SEEN_FULL = 25,
	OUTCOME_COUNT = 26,
};

enum event_kind {
	EVENT_LEARNED = 1,
	EVENT_VIOLATION = 2,
};

/* One record of a ring; path_bytes bytes of path follow it, without a terminating zero. */
struct exec_event {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 cgroup;  /* of the container that the exec was decided as */
	__u64 path_hash;
	__u32 slot;
	__u32 generation;
	__u32 policy;
	__u32 list;
	__u32 pid;
	__u32 parent_pid;
	__u32 uid;
	__u32 path_bytes;
	__u8 kind;   /* enum event_kind */
	__u8 mode;   /* enum mode: what was done about it */
	__u8 reason; /* enum reason */
	__u8 origin; /* enum origin */
	__u32 reserved;
	char command[COMMAND_BYTES];
	char parent_command[COMMAND_BYTES];
};

/* Dedup of records, never of decisions. */
struct seen_key {
	__u64 path_hash;
	__u32 slot;
	__u32 generation;
	__u32 list;
	__u32 mode_and_reason; /* mode in bits 0-7, reason in bits 8-15 */
};

struct seen_value {
	__u64 count;
	__u64 first_ns;
	__u64 last_ns;
};

#endif
