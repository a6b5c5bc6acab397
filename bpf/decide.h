/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The decision: container, policy, path, one lookup. */
#ifndef RUNTIME_ENFORCER_DECIDE_H
#define RUNTIME_ENFORCER_DECIDE_H

#include "events.h"
#include "path.h"

#define EPERM 1
#define ALLOW 0
#define DENY (-EPERM)

/* How a program is attached, known when it is compiled. */
enum attachment {
	ATTACHED_LSM,
	ATTACHED_FMOD_RET, /* the only one, or the first of three */
	ATTACHED_COPY,	   /* only denies what the first one was skipped for */
};

struct verdict {
	__u32 slot;
	__u32 list;
	__u32 mode;
	__u32 reason;
};

/* Is the path in the list? The key is built in place: the list's id goes in front of the text. */
static __always_inline bool is_listed(struct scratch *scratch, __u32 list)
{
	__u32 start = scratch->start - LIST_ID_BYTES;

	if (start < PATH_START_MIN - LIST_ID_BYTES || start >= PATH_END)
		return false;

	void *key = &scratch->text[start & PATH_MASK];
	__u32 bytes = PATH_END - start;

	*(__u32 *)key = list;
/* The empty instruction keeps clang from merging the calls into one, which the kernel could not inline. */
#define LOOK_INTO(BYTES)                                                                                               \
	if (bytes <= BYTES) {                                                                                          \
		void *entry = bpf_map_lookup_elem(&allowed_##BYTES, key);                                              \
		asm volatile("# allowed_" #BYTES : "+r"(entry));                                                       \
		return entry;                                                                                          \
	}
	FOR_EACH_ALLOWED_KEY_BYTES(LOOK_INTO)
	return false;
}

static __always_inline void count_reason(__u32 reason)
{
	if (reason >= REASON_UNRESOLVED)
		count(OUTCOME_UNRESOLVED + reason - REASON_UNRESOLVED);
}

/* Does this run speak for the exec? Copies do only when they deny what the first program missed. */
static __always_inline bool speaks(enum attachment attachment)
{
	return attachment != ATTACHED_COPY;
}

static __always_inline bool is_check_only(struct linux_binprm *bprm)
{
	struct linux_binprm___check *check = (void *)bprm;

	return bpf_core_field_exists(struct linux_binprm___check, is_check) && BPF_CORE_READ_BITFIELD(check, is_check);
}

/* A container without a policy: tell the agent what runs there, if it wants to know. */
static __always_inline int learn(struct linux_binprm *bprm, struct scratch *scratch, __u32 scratch_slot, __u32 slot,
				 struct mnt_namespace *namespace)
{
	__u32 reason = build_path(scratch, scratch_slot, bprm->file, namespace);

	/* what can never match is never proposed */
	if (reason) {
		count_reason(reason);
		count(OUTCOME_UNBOUND);
		return ALLOW;
	}

	struct container_counters *counters = bpf_map_lookup_elem(&container_counters, &slot);

	if (counters)
		__sync_fetch_and_add(&counters->learned, 1);
	count(OUTCOME_LEARNED);
	send_record(scratch_slot, slot, 0, REPORT(EVENT_LEARNED, MODE_NONE, REASON_NONE));
	return ALLOW;
}

static __always_inline int violation(struct linux_binprm *bprm, __u32 scratch_slot, __u32 slot, __u64 policy,
				     __u32 mode, __u32 reason, enum attachment attachment)
{
	int answer = mode == MODE_MONITOR ? ALLOW : DENY;

	if (is_check_only(bprm)) {
		if (speaks(attachment))
			count(OUTCOME_CHECK_ONLY);
		return answer;
	}
	if (!speaks(attachment)) {
		if (answer == ALLOW)
			return ALLOW;
		count(OUTCOME_CAUGHT_BY_COPY);
	}

	struct container_counters *counters = bpf_map_lookup_elem(&container_counters, &slot);

	if (counters)
		__sync_fetch_and_add(&counters->violations, 1);
	count_reason(reason);
	count(answer == ALLOW ? OUTCOME_MONITORED : OUTCOME_DENIED);
	send_record(scratch_slot, slot, (__u32)policy, REPORT(EVENT_VIOLATION, mode, reason));
	return answer;
}

static __always_inline int allow(struct linux_binprm *bprm, __u32 outcome, enum attachment attachment)
{
	if (speaks(attachment))
		count(is_check_only(bprm) ? OUTCOME_CHECK_ONLY : outcome);
	return ALLOW;
}

/* No room to build a path in: what cannot be decided is denied in protect mode. There is no record, only counts. */
static __always_inline int without_scratch(__u32 slot, struct container *container, enum attachment attachment)
{
	struct container_counters *counters = bpf_map_lookup_elem(&container_counters, &slot);
	__u32 zero = 0, policy_id = container->policy;
	__u64 *word = bpf_map_lookup_elem(&policies, &policy_id);
	struct settings *node = bpf_map_lookup_elem(&settings, &zero);
	bool monitored = (word && (*word >> POLICY_MODE_SHIFT & 255) == MODE_MONITOR) || (node && node->override);

	count(OUTCOME_NO_SCRATCH);
	if (!policy_id) {
		count(OUTCOME_UNBOUND);
		return ALLOW;
	}
	if (counters)
		__sync_fetch_and_add(&counters->violations, 1);
	count(monitored ? OUTCOME_MONITORED : OUTCOME_DENIED);
	return monitored ? ALLOW : DENY;
}

static __always_inline int decide(struct linux_binprm *bprm, struct task_struct *task, __u32 slot,
				  struct container *container, __u32 mount_namespace, struct scratch *scratch,
				  __u32 scratch_slot, enum attachment attachment)
{
	struct mnt_namespace *namespace = task->nsproxy->mnt_ns;
	bool other_namespace = container->mount_namespace && container->mount_namespace != mount_namespace;
	__u32 zero = 0, policy_id = container->policy;

	if (other_namespace && is_runtime_bootstrap(task))
		return allow(bprm, OUTCOME_BOOTSTRAP, attachment);
	if (!policy_id) {
		if (!(container->flags & CONTAINER_LEARN) || other_namespace || !speaks(attachment) ||
		    is_check_only(bprm))
			return allow(bprm, OUTCOME_UNBOUND, attachment);
		return learn(bprm, scratch, scratch_slot, slot, namespace);
	}

	__u64 *word = bpf_map_lookup_elem(&policies, &policy_id);
	struct settings *node = bpf_map_lookup_elem(&settings, &zero);
	__u64 policy = word ? *word : 0;
	__u32 mode = policy >> POLICY_MODE_SHIFT & 255;
	__u32 override = node ? node->override : OVERRIDE_NONE;
	__u32 reason;

	if (override == OVERRIDE_OFF)
		return allow(bprm, OUTCOME_OVERRIDDEN, attachment);
	if (mode != MODE_MONITOR)
		mode = MODE_PROTECT;
	if (override == OVERRIDE_MONITOR)
		mode = MODE_MONITOR;

	if (other_namespace && policy >> POLICY_FLAGS_SHIFT & POLICY_OTHER_MOUNT_NAMESPACES_UNCHECKED)
		return allow(bprm, OUTCOME_UNCHECKED, attachment);

	/* the path is wanted for the record too, whatever the reason */
	reason = build_path(scratch, scratch_slot, bprm->file, namespace);
	if (!policy)
		reason = REASON_NO_POLICY;
	else if (other_namespace)
		reason = REASON_OTHER_MOUNT_NAMESPACE;
	else if (!reason) {
		if (is_listed(scratch, (__u32)policy))
			return allow(bprm, OUTCOME_ALLOWED, attachment);
		reason = REASON_UNLISTED;
	}
	return violation(bprm, scratch_slot, slot, policy, mode, reason, attachment);
}

/* The whole check of one exec; the caller is one of the attached programs. */
static __always_inline int check_exec(struct linux_binprm *bprm, enum attachment attachment, __u32 scratch_slot)
{
	struct task_struct *task = current_task(bprm);
	__u32 mount_namespace = task->nsproxy->mnt_ns->ns.inum;
	bool nested = false;
	__u32 *slot = slot_by_cgroup(task, &nested);
	struct container *container;

	if (!slot) {
		slot = slot_by_mount_namespace(mount_namespace);
		if (!slot) {
			if (speaks(attachment))
				count(OUTCOME_UNTRACKED);
			return ALLOW;
		}
		if (speaks(attachment))
			count(OUTCOME_ESCAPED_CGROUP);
	}
	container = bpf_map_lookup_elem(&containers, slot);
	if (!container)
		return DENY;
	if (container->mount_namespace && container->mount_namespace != mount_namespace) {
		/* a task of another container that moved into this one's cgroup stays what it was */
		__u32 *own = slot_by_mount_namespace(mount_namespace);

		if (own) {
			slot = own;
			container = bpf_map_lookup_elem(&containers, slot);
			if (!container)
				return DENY;
			if (speaks(attachment))
				count(OUTCOME_ESCAPED_CGROUP);
		}
	}
	if (nested && speaks(attachment))
		count(OUTCOME_NESTED_CGROUP);

	struct scratch *scratch;
	int answer;

	if (attachment == ATTACHED_LSM)
		scratch = scratch_claim(&scratch_slot);
	else
		scratch = bpf_map_lookup_elem(&scratches, &scratch_slot);
	if (!scratch)
		return without_scratch(*slot, container, attachment);
	answer = decide(bprm, task, *slot, container, mount_namespace, scratch, scratch_slot, attachment);
	if (attachment == ATTACHED_LSM)
		scratch_release(scratch);
	return answer;
}

#endif
