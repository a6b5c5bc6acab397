/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The maps, and what is fixed before the program is loaded. Capacities and flags may be changed at load. */
#ifndef RUNTIME_ENFORCER_MAPS_H
#define RUNTIME_ENFORCER_MAPS_H

#include "abi.h"

/* Set before load; the verifier then drops what does not apply. */
const volatile __u32 host_mount_namespace = 0; /* inode number of the host's mount namespace */
const volatile __s32 cgroup_subsystem = -1;    /* cgroup v1: index of the hierarchy to read; v2: -1 */
const volatile __u32 path_bytes_max = PATH_BYTES_MAX;
const volatile __u64 hash_seed = 0;
const volatile bool has_typed_cast = false; /* the kernel has bpf_rdonly_cast (6.2) */
const volatile __u32 slot_mask = 8191;	    /* size of containers, a power of two, less one */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

/*
 * cgroup id -> slot. The agent prefers the slot whose number is the id's low bits, which the program tries
 * first; this map holds every container, and alone says so.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} cgroups SEC(".maps");

/* inode number of a container's mount namespace -> slot: finds those who left their cgroup */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u32);
} mount_namespaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct container);
} containers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct container_counters);
} container_counters SEC(".maps");

/* policy id -> list id, mode and flags in one word, so that they change together */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} policies SEC(".maps");

#define ALLOWED_TABLE(BYTES)                                                                                 \
	struct {                                                                                             \
		__uint(type, BPF_MAP_TYPE_HASH);                                                             \
		__uint(max_entries, 65536);                                                                  \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                        \
		__uint(key_size, BYTES);                                                                     \
		__uint(value_size, sizeof(__u32));                                                           \
	} allowed_##BYTES SEC(".maps");
FOR_EACH_ALLOWED_KEY_BYTES(ALLOWED_TABLE)

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct seen_key);
	__type(value, struct seen_value);
} seen SEC(".maps");

/* Two rings, so that a storm of learning never delays a violation. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} learning_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} violation_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OUTCOME_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} outcomes SEC(".maps");

static __always_inline void count(__u32 outcome)
{
	__u64 *n = bpf_map_lookup_elem(&outcomes, &outcome);
	if (n)
		__sync_fetch_and_add(n, 1);
}

#endif
