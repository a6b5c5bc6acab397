/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The kernel types and fields that the program reads, and nothing else. Offsets are relocated against the
 * running kernel (CO-RE), so only names and types count here. A suffix behind ___ marks an older or newer
 * form of the same type.
 */
#ifndef RUNTIME_ENFORCER_KERNEL_TYPES_H
#define RUNTIME_ENFORCER_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct dentry;
struct cgroup;

struct vfsmount {
	struct dentry *mnt_root;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct hlist_bl_node d_hash;
};

/* up to 6.13: the inline name is an array of bytes (32 of them until 6.8, then 40) */
struct dentry___bytes {
	unsigned char d_iname[32];
};

/* from 6.14 on: the same bytes as words */
union shortname_store___words {
	unsigned long words[4];
};

struct dentry___words {
	union shortname_store___words d_shortname;
};

struct ns_common {
	unsigned int inum;
};

struct mount;

struct mnt_namespace {
	struct ns_common ns;
	struct mount *root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
};

/* up to 6.0: the ids of all ancestors, by level */
struct cgroup___ids {
	__u64 ancestor_ids[1];
};

/* from 6.1 on: the ancestors themselves */
struct cgroup___pointers {
	struct cgroup *ancestors[1];
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	struct task_struct *real_parent;
	struct mm_struct *mm;
	int tgid;
	char comm[16];
};

struct mm_struct {
	struct task_struct *owner;
};

struct linux_binprm {
	struct file *file;
	struct mm_struct *mm;
	const char *filename;
	const char *interp;
};

/* from 6.14 on: set by execveat(AT_EXECVE_CHECK) */
struct linux_binprm___check {
	unsigned int is_check : 1;
};

#pragma clang attribute pop

#endif
