/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Who started a program in a container: a descendant of the container's first process, or one of a task that
 * entered from outside (kubectl exec, a probe). Orphans are adopted by the first process and count as its
 * own.
 */
#ifndef RUNTIME_ENFORCER_ORIGIN_H
#define RUNTIME_ENFORCER_ORIGIN_H

#include "cgroup.h"

#define ANCESTORS_MAX 64

/* A global function, so that the verifier reads its loop once. */
__attribute__((noinline)) int origin_of(__u32 slot)
{
	struct container *container = bpf_map_lookup_elem(&containers, &slot);
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!container || !container->init_pid)
		return ORIGIN_UNKNOWN;

#pragma clang loop unroll(disable)
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		__u32 pid = BPF_CORE_READ(task, tgid);

		if (pid == container->init_pid)
			return ORIGIN_ENTRYPOINT;
		if (pid <= 1)
			return ORIGIN_EXEC;
		task = BPF_CORE_READ(task, real_parent);
	}
	return ORIGIN_UNKNOWN;
}

/*
 * The runtime on its way into the container: its child shares its memory (vfork) with a parent that belongs
 * to no container. runc from 1.4 on executes itself so for `exec`. Nothing inside a container can forge it:
 * to share memory with a task outside, one has to be its child by vfork, and that child is the runtime's own.
 */
static __always_inline bool is_runtime_bootstrap(struct task_struct *task, struct settings *node)
{
	struct task_struct *parent = task->real_parent;
	struct found found = {};

	if (task->mm != parent->mm || find_by_cgroup(&found, parent, node))
		return false;
	return !find_by_mount_namespace(&found, parent->nsproxy->mnt_ns->ns.inum);
}

#endif
