/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The decision: container, policy, path, one lookup. */
#ifndef RUNTIME_ENFORCER_DECIDE_H
#define RUNTIME_ENFORCER_DECIDE_H

#include "events.h"
#include "path.h"

#define EPERM 1
#define ALLOW 0
#define DENY (-EPERM)

/* The verifier wants to see the two constants; without the barrier clang computes them by arithmetic. */
static __always_inline int answer(bool allowed)
{
	if (allowed)
		return ALLOW;
	barrier();
	return DENY;
}

/* How a program is attached, known when it is compiled. */
enum attachment {
	ATTACHED_LSM,
	ATTACHED_FMOD_RET, /* the only one, or the first of three */
	ATTACHED_COPY,	   /* only denies what the first one was skipped for */
};

/* Is the path in the list? The key is built in place: the list's id goes in front of the text. */
static __always_inline bool is_listed(struct scratch *scratch, __u32 list)
{
	__u32 start = scratch->start;

	if (start >= PATH_ROOM)
		return false;

	void *key = scratch->text + PATH_START_MIN + start - LIST_ID_BYTES;
	__u32 bytes = LIST_ID_BYTES + PATH_ROOM - start;

	*(__u32 *)key = list;
/* The empty instruction keeps clang from merging the calls into one, which the kernel could not inline. */
#define LOOK_INTO(BYTES)                                                                                     \
	if (bytes <= BYTES) {                                                                                \
		void *entry = bpf_map_lookup_elem(&allowed_##BYTES, key);                                    \
		asm volatile("# allowed_" #BYTES : "+r"(entry));                                             \
		return entry;                                                                                \
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

	return bpf_core_field_exists(struct linux_binprm___check, is_check) &&
	       BPF_CORE_READ_BITFIELD(check, is_check);
}

/* A container without a policy: tell the agent what runs there, if it wants to know. */
static __always_inline int learn(struct linux_binprm *bprm, struct scratch *scratch, __u32 scratch_slot,
				 __u32 slot, struct mnt_namespace *namespace)
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
	bool allowed = mode == MODE_MONITOR;

	if (is_check_only(bprm)) {
		if (speaks(attachment))
			count(OUTCOME_CHECK_ONLY);
		return answer(allowed);
	}
	if (!speaks(attachment)) {
		if (allowed)
			return ALLOW;
		count(OUTCOME_CAUGHT_BY_COPY);
	}

	struct container_counters *counters = bpf_map_lookup_elem(&container_counters, &slot);

	if (counters)
		__sync_fetch_and_add(&counters->violations, 1);
	count_reason(reason);
	count(allowed ? OUTCOME_MONITORED : OUTCOME_DENIED);
	send_record(scratch_slot, slot, (__u32)policy, REPORT(EVENT_VIOLATION, mode, reason));
	return answer(allowed);
}

static __always_inline int allow(struct linux_binprm *bprm, __u32 outcome, enum attachment attachment)
{
	if (speaks(attachment))
		count(is_check_only(bprm) ? OUTCOME_CHECK_ONLY : outcome);
	return ALLOW;
}

/* What a run knows about its exec. */
struct exec {
	struct linux_binprm *bprm;
	struct task_struct *task;
	struct mnt_namespace *namespace;
	struct settings *node;
	__u32 mount_namespace;
	enum attachment attachment;
};

/* What the container's policy says, under the node's override. A policy that is gone protects. */
static __always_inline __u32 mode_of(__u64 policy, struct settings *node)
{
	if (node->override == OVERRIDE_MONITOR || (policy >> POLICY_MODE_SHIFT & 255) == MODE_MONITOR)
		return MODE_MONITOR;
	return MODE_PROTECT;
}

/* No room to build a path in: what cannot be decided is denied in protect mode. No record, only counts. */
static __always_inline int without_scratch(struct exec *exec, struct found *found)
{
	struct container_counters *counters = bpf_map_lookup_elem(&container_counters, &found->slot);
	__u32 policy_id = found->container->policy;
	__u64 *word = bpf_map_lookup_elem(&policies, &policy_id);
	bool monitored = mode_of(word ? *word : 0, exec->node) == MODE_MONITOR;

	count(OUTCOME_NO_SCRATCH);
	if (!policy_id)
		return allow(exec->bprm, OUTCOME_UNBOUND, exec->attachment);
	if (exec->node->override == OVERRIDE_OFF)
		return allow(exec->bprm, OUTCOME_OVERRIDDEN, exec->attachment);
	if (counters)
		__sync_fetch_and_add(&counters->violations, 1);
	count(monitored ? OUTCOME_MONITORED : OUTCOME_DENIED);
	return answer(monitored);
}

static __always_inline int decide(struct exec *exec, struct found *found, struct scratch *scratch,
				  __u32 scratch_slot)
{
	struct container *container = found->container;
	struct linux_binprm *bprm = exec->bprm;
	bool other_namespace =
	    container->mount_namespace && container->mount_namespace != exec->mount_namespace;
	__u32 policy_id = container->policy;

	if (other_namespace && is_runtime_bootstrap(exec->task, exec->node))
		return allow(bprm, OUTCOME_BOOTSTRAP, exec->attachment);
	if (!policy_id) {
		if (!(container->flags & CONTAINER_LEARN) || other_namespace || !speaks(exec->attachment) ||
		    is_check_only(bprm))
			return allow(bprm, OUTCOME_UNBOUND, exec->attachment);
		return learn(bprm, scratch, scratch_slot, found->slot, exec->namespace);
	}

	__u64 *word = bpf_map_lookup_elem(&policies, &policy_id);
	__u64 policy = word ? *word : 0;
	__u32 reason;

	if (exec->node->override == OVERRIDE_OFF)
		return allow(bprm, OUTCOME_OVERRIDDEN, exec->attachment);
	if (other_namespace && policy >> POLICY_FLAGS_SHIFT & POLICY_OTHER_MOUNT_NAMESPACES_UNCHECKED)
		return allow(bprm, OUTCOME_UNCHECKED, exec->attachment);

	/* the path is wanted for the record too, whatever the reason */
	reason = build_path(scratch, scratch_slot, bprm->file, exec->namespace);
	if (!policy)
		reason = REASON_NO_POLICY;
	else if (other_namespace)
		reason = REASON_OTHER_MOUNT_NAMESPACE;
	else if (!reason) {
		if (is_listed(scratch, (__u32)policy))
			return allow(bprm, OUTCOME_ALLOWED, exec->attachment);
		reason = REASON_UNLISTED;
	}
	return violation(bprm, scratch_slot, found->slot, policy, mode_of(policy, exec->node), reason,
			 exec->attachment);
}

/* The whole check of one exec; the caller is one of the attached programs. */
static __always_inline int check_exec(struct linux_binprm *bprm, enum attachment attachment,
				      __u32 scratch_slot)
{
	struct task_struct *task = current_task(bprm);
	struct mnt_namespace *namespace = task->nsproxy->mnt_ns;
	__u32 zero = 0;
	struct exec exec = {
	    .bprm = bprm,
	    .task = task,
	    .namespace = namespace,
	    .node = bpf_map_lookup_elem(&settings, &zero),
	    .mount_namespace = namespace->ns.inum,
	    .attachment = attachment,
	};
	struct found found = {};

	if (!exec.node)
		return ALLOW; /* an array's only element: cannot happen */
	if (!find_by_cgroup(&found, task, exec.node)) {
		if (!find_by_mount_namespace(&found, exec.mount_namespace)) {
			if (speaks(attachment))
				count(OUTCOME_UNTRACKED);
			return ALLOW;
		}
		if (speaks(attachment))
			count(OUTCOME_ESCAPED_CGROUP);
	}
	if (!found.container)
		return DENY;
	if (found.container->mount_namespace && found.container->mount_namespace != exec.mount_namespace) {
		/* a task of another container that moved into this one's cgroup stays what it was */
		if (find_by_mount_namespace(&found, exec.mount_namespace) && speaks(attachment))
			count(OUTCOME_ESCAPED_CGROUP);
		if (!found.container)
			return DENY;
	}
	if (found.nested && speaks(attachment))
		count(OUTCOME_NESTED_CGROUP);

	struct scratch *scratch;
	int result;

	if (attachment == ATTACHED_LSM)
		scratch = scratch_claim(&scratch_slot);
	else
		scratch = bpf_map_lookup_elem(&scratches, &scratch_slot);
	if (!scratch)
		return without_scratch(&exec, &found);
	result = decide(&exec, &found, scratch, scratch_slot);
	if (attachment == ATTACHED_LSM)
		scratch_release(scratch);
	return result;
}

#endif
