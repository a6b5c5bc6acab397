/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Which container a task belongs to. Its own cgroup is looked up, then its ancestors at the levels where
 * containers are bound: nested cgroups need no tracking, and however many or deep a tenant makes them, the
 * work is bounded by those levels. Who left its cgroup is found by its mount namespace.
 */
#ifndef RUNTIME_ENFORCER_CGROUP_H
#define RUNTIME_ENFORCER_CGROUP_H

#include "maps.h"
#include "kernel_types.h"

/* Containers are bound at no more distinct levels than this; the agent refuses a cgroup beyond. */
#define CGROUP_LEVELS_MAX 32

/* bpf_get_current_task_btf is newer than 5.10; there the new mm, made for this very exec, names its owner. */
static __always_inline struct task_struct *current_task(struct linux_binprm *bprm)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
		return bpf_get_current_task_btf();
	return bprm->mm->owner;
}

static __always_inline struct cgroup *cgroup_of(struct task_struct *task)
{
	if (cgroup_subsystem < 0)
		return task->cgroups->dfl_cgrp;
	return task->cgroups->subsys[cgroup_subsystem & 15]->cgroup;
}

static __always_inline __u64 ancestor_id(struct cgroup *cgroup, __u32 level)
{
	__u64 id = 0;

	if (bpf_core_field_exists(struct cgroup___pointers, ancestors)) {
		struct cgroup *ancestor = 0;

		bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
				      (void *)cgroup +
					  bpf_core_field_offset(struct cgroup___pointers, ancestors) +
					  level * sizeof(ancestor));
		id = BPF_CORE_READ(ancestor, kn, id);
	} else {
		bpf_probe_read_kernel(&id, sizeof(id),
				      (void *)cgroup +
					  bpf_core_field_offset(struct cgroup___ids, ancestor_ids) +
					  level * sizeof(id));
	}
	return id;
}

/* A container that was found, and how. */
struct found {
	struct container *container;
	__u32 slot;
	bool nested;
	bool broken; /* a slot that must exist does not */
};

static __always_inline bool find_slot(struct found *found, __u32 *slot)
{
	if (!slot)
		return false;
	found->slot = *slot;
	found->container = bpf_map_lookup_elem(&containers, slot);
	found->broken = !found->container;
	return true;
}

static __always_inline bool find_cgroup(struct found *found, __u64 id)
{
	__u32 likely = id & slot_mask;
	struct container *container = bpf_map_lookup_elem(&containers, &likely);

	if (container && container->cgroup == id) {
		found->container = container;
		found->slot = likely;
		return true;
	}
	return find_slot(found, bpf_map_lookup_elem(&cgroups, &id));
}

/* Finds the container that the task's cgroup lies in. */
static __always_inline bool find_by_cgroup(struct found *found, struct task_struct *task,
					   struct settings *node)
{
	struct cgroup *cgroup = cgroup_of(task);
	__u32 level = cgroup->level;

	if (level < node->shallowest_level)
		return false;
	if (find_cgroup(found, cgroup->kn->id))
		return true;

	__u32 shallowest = node->shallowest_level;
	__u32 candidate = node->deepest_level < level ? node->deepest_level + 1 : level;

#pragma clang loop unroll(disable)
	for (int i = 0; i < CGROUP_LEVELS_MAX; i++) {
		if (candidate <= shallowest)
			break;
		candidate--;
		if (find_cgroup(found, ancestor_id(cgroup, candidate))) {
			found->nested = true;
			return true;
		}
	}
	return false;
}

/* Finds the container whose mount namespace this is; none if it is the host's or nobody's. */
static __always_inline bool find_by_mount_namespace(struct found *found, __u32 mount_namespace)
{
	if (mount_namespace == host_mount_namespace)
		return false;
	return find_slot(found, bpf_map_lookup_elem(&mount_namespaces, &mount_namespace));
}

#endif
