/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Where a path is built. Programs run without migrating, but on preemptible kernels not without interruption,
 * and an LSM program may start again on the same CPU before the interrupted run ends. So such a run claims a
 * slot by compare-and-swap. A tracing program cannot start twice on a CPU; each copy of it owns one slot.
 */
#ifndef RUNTIME_ENFORCER_SCRATCH_H
#define RUNTIME_ENFORCER_SCRATCH_H

#include "maps.h"
#include "kernel_types.h"

#define SCRATCH_SLOTS 8

/*
 * The path's text ends PATH_ROOM behind PATH_START_MIN; what lies further behind is always zero and pads the
 * key, what lies before takes the head of a record. Positions of a path count from PATH_START_MIN.
 */
#define PATH_START_MIN 256
#define PATH_ROOM 4096

struct scratch {
	__u64 claimed;
	struct dentry *dentry; /* where the walk stands, as plain numbers */
	struct mount *mount;
	__u64 hash;
	__u32 start; /* the path's text so far starts here */
	__u32 slot;
	char text[PATH_START_MIN + PATH_ROOM + 4096 + 256];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_claim(__u32 *slot)
{
#pragma unroll
	for (__u32 i = 0; i < SCRATCH_SLOTS; i++) {
		__u32 key = i;
		struct scratch *scratch = bpf_map_lookup_elem(&scratches, &key);

		if (scratch && __sync_val_compare_and_swap(&scratch->claimed, 0, 1) == 0) {
			/* through memory: the verifier goes on with one state and not one per slot */
			scratch->slot = i;
			barrier();
			*slot = scratch->slot;
			return scratch;
		}
	}
	return 0;
}

static __always_inline void scratch_release(struct scratch *scratch)
{
	*(volatile __u64 *)&scratch->claimed = 0;
}

#endif
