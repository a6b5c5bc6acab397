/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Records for the agent: the first of its kind at once, repeats as counts. */
#ifndef RUNTIME_ENFORCER_EVENTS_H
#define RUNTIME_ENFORCER_EVENTS_H

#include "origin.h"
#include "scratch.h"

/* What a record says beyond the path: fits into the arguments of a global function. */
#define REPORT(KIND, MODE, REASON) ((KIND) | (MODE) << 8 | (REASON) << 16)
#define REPORT_KIND(REPORT) ((REPORT)&255)
#define REPORT_MODE(REPORT) ((REPORT) >> 8 & 255)
#define REPORT_REASON(REPORT) ((REPORT) >> 16 & 255)

#define HASH_MULTIPLIER 0x9e3779b97f4a7c15ULL

/*
 * Keyed by a seed that changes at each load, and used only to recognise a record that was already sent: two
 * paths that collide share a count, never a decision. Words behind the path are zero.
 */
static __always_inline __u64 hash_path(struct scratch *scratch, __u32 start)
{
	__u64 hash = hash_seed ^ (PATH_ROOM - start);

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < (PATH_BYTES_MAX + 8) / 8; i++) {
		__u32 at = start + i * 8;

		if (at >= PATH_ROOM)
			break;
		__u64 *word = (void *)(scratch->text + PATH_START_MIN + at);

		hash = (hash ^ *word) * HASH_MULTIPLIER;
		hash ^= hash >> 29;
		/* through memory: one state per step for the verifier */
		scratch->hash = hash;
		barrier();
		hash = scratch->hash;
	}
	return hash;
}

/*
 * Sends the path in the scratch as a record of the container in `slot`, unless the same one was sent before:
 * then it is only counted. It is marked as seen only once it is in the ring, so a full ring delays a record
 * and never swallows it. A global function, so that the verifier reads it once.
 */
__attribute__((noinline)) int send_record(__u32 scratch_slot, __u32 slot, __u32 list, __u32 report)
{
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &scratch_slot);
	struct container *container = bpf_map_lookup_elem(&containers, &slot);
	bool learned = REPORT_KIND(report) == EVENT_LEARNED;

	if (!scratch || !container)
		return 0;

	__u32 start = scratch->start;

	__u32 path_bytes = PATH_ROOM - start;

	/* keeps the compiler from deriving one bound from the other behind the verifier's back */
	barrier_var(path_bytes);
	if (start > PATH_ROOM || path_bytes > PATH_ROOM)
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	struct seen_key key = {
	    .path_hash = hash_path(scratch, start),
	    .slot = slot,
	    .generation = container->generation,
	    .list = list,
	    .mode_and_reason = REPORT_MODE(report) | REPORT_REASON(report) << 8,
	};
	struct seen_value *before = bpf_map_lookup_elem(&seen, &key);

	if (before) {
		__sync_fetch_and_add(&before->count, 1);
		before->last_ns = now;
		count(learned ? OUTCOME_LEARNING_REPEATED : OUTCOME_VIOLATION_REPEATED);
		return 0;
	}

	struct exec_event *event = (void *)(scratch->text + PATH_START_MIN + start - sizeof(*event));
	struct task_struct *parent = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), real_parent);

	event->time_ns = now;
	event->cgroup = container->cgroup;
	event->path_hash = key.path_hash;
	event->slot = slot;
	event->generation = key.generation;
	event->policy = container->policy;
	event->list = list;
	event->pid = bpf_get_current_pid_tgid() >> 32;
	event->parent_pid = BPF_CORE_READ(parent, tgid);
	event->uid = bpf_get_current_uid_gid();
	event->path_bytes = path_bytes;
	event->kind = REPORT_KIND(report);
	event->mode = REPORT_MODE(report);
	event->reason = REPORT_REASON(report);
	event->origin = origin_of(slot);
	event->reserved = 0;
	bpf_get_current_comm(event->command, sizeof(event->command));
	bpf_probe_read_kernel(event->parent_command, sizeof(event->parent_command),
			      (void *)parent + bpf_core_field_offset(struct task_struct, comm));

	long failed = learned ? bpf_ringbuf_output(&learning_events, event, sizeof(*event) + path_bytes, 0)
			      : bpf_ringbuf_output(&violation_events, event, sizeof(*event) + path_bytes, 0);

	if (failed) {
		count(learned ? OUTCOME_LEARNING_RING_FULL : OUTCOME_VIOLATION_RING_FULL);
		return 0;
	}

	struct seen_value first = {.count = 1, .first_ns = now, .last_ns = now};

	if (bpf_map_update_elem(&seen, &key, &first, BPF_ANY))
		count(OUTCOME_SEEN_FULL);
	return 0;
}

#endif
