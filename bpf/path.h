/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The path of an executable from the top of the task's mount tree, built from its last component to its
 * first. Not from the task's root: a chroot inside the container must not change what a file is called.
 */
#ifndef RUNTIME_ENFORCER_PATH_H
#define RUNTIME_ENFORCER_PATH_H

#include "scratch.h"

extern void *bpf_rdonly_cast(void *pointer, __u32 type) __ksym __weak;

/* Components resolved by plain loads; deeper paths go on by checked reads. */
#define QUICK_COMPONENTS 32
#define STEPS_PER_CLIMB 256
#define CLIMBS 9 /* 2,047 components fit into a path; the mounts crossed on the way count too */

enum climb {
	CLIMB_MORE = 0,
	CLIMB_TOP = 1,
	CLIMB_TOO_LONG = 2,
	CLIMB_FAILED = 3,
};

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

/* The first 16 bytes of a name of up to 16: the kernel keeps those inside the dentry (at least 32 fit). */
static __always_inline void inline_name(struct dentry *dentry, __u64 *first, __u64 *second, bool both)
{
	if (bpf_core_field_exists(struct dentry___bytes, d_iname)) {
		/* through a pointer of words: taken from the array, clang would read byte by byte */
		__u64 *words = (void *)((struct dentry___bytes *)dentry)->d_iname;

		*first = words[0];
		if (both)
			*second = words[1];
	} else {
		struct dentry___words *words = (void *)dentry;

		*first = words->d_shortname.words[0];
		if (both)
			*second = words->d_shortname.words[1];
	}
}

/*
 * Writes "/name" so that it ends at `end`, and returns where it starts; a start out of room says that it did
 * not fit. Positions count from the first that a path may start at. Short names are stored as whole words
 * aligned to their end: what that overwrites lies to the left and is not written yet.
 */
static __always_inline __u32 prepend_name(struct scratch *scratch, __u32 end, struct dentry *dentry)
{
	__u32 length = dentry->d_name.len;
	__u32 start = end - length - 1;
	char *room = scratch->text + PATH_START_MIN;

	if (start >= PATH_ROOM)
		return start;
	if (length <= 8) {
		__u64 first, second, *tail = (void *)(room + end - 8);

		inline_name(dentry, &first, &second, false);
		*tail = first << (-8 * length & 63);
	} else if (length <= 16) {
		__u64 first, second, *tail = (void *)(room + end - 8), *head = (void *)(room + start + 1);

		inline_name(dentry, &first, &second, true);
		*head = first;
		*tail = second << (-8 * length & 63) | (first >> 8) >> ((8 * length - 72) & 63);
	} else {
		bpf_probe_read_kernel(room + start + 1, length & 255, dentry->d_name.name);
	}
	room[start] = '/';
	return start;
}

/*
 * Goes on from scratch->mount and scratch->dentry by checked reads, up to STEPS_PER_CLIMB steps. A global
 * function, so that the verifier reads it once whatever the number of calls. At the top, scratch->mount is
 * the topmost mount.
 */
__attribute__((noinline)) int climb(__u32 slot)
{
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);

	if (!scratch)
		return CLIMB_FAILED;

	struct dentry *dentry = scratch->dentry;
	struct mount *mount = scratch->mount;

#pragma clang loop unroll(disable)
	for (int i = 0; i < STEPS_PER_CLIMB; i++) {
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);

		if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
			struct mount *below = BPF_CORE_READ(mount, mnt_parent);

			if (!below)
				return CLIMB_FAILED;
			if (below == mount) {
				scratch->mount = mount;
				return CLIMB_TOP;
			}
			dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			mount = below;
			continue;
		}
		/* a tree's root that is not its mount's: opened by handle, or moved out of the mount */
		if (dentry == parent)
			return CLIMB_FAILED;

		__u32 length = BPF_CORE_READ(dentry, d_name.len) & 255;
		__u32 start = scratch->start - length - 1;
		char *room = scratch->text + PATH_START_MIN;

		if (start >= PATH_ROOM)
			return CLIMB_TOO_LONG;
		bpf_probe_read_kernel(room + start + 1, length, BPF_CORE_READ(dentry, d_name.name));
		room[start] = '/';
		/* through memory, so that the verifier sees one state per step and not one per length */
		scratch->start = start;
		barrier();
		dentry = parent;
	}
	scratch->dentry = dentry;
	scratch->mount = mount;
	return CLIMB_MORE;
}

/*
 * Builds the path of `file` for `task` into the scratch. Returns REASON_NONE if the path names the file: its
 * mount belongs to the task's mount namespace, its tree ends at that namespace's root, and its name was not
 * removed. Otherwise the reason; the text then is what could be read, for people.
 */
static __always_inline __u32 build_path(struct scratch *scratch, __u32 slot, struct file *file,
					struct mnt_namespace *namespace)
{
	struct dentry *dentry = file->f_path.dentry;
	struct vfsmount *vfsmount = file->f_path.mnt;
	struct dentry *root = vfsmount->mnt_root;
	struct mount *mount = mount_of(vfsmount);
	struct mount *top = namespace->root;
	struct mount *below;
	struct dentry *mountpoint;
	struct mnt_namespace *mount_namespace;
	__u32 start = PATH_ROOM;
	bool at_root = false;
	bool unlinked = !dentry->d_hash.pprev;

#pragma clang loop unroll(disable)
	for (int i = 0; i < QUICK_COMPONENTS; i++) {
		struct dentry *parent = dentry->d_parent;
		__u32 longer;

		if (dentry == root) {
			at_root = true;
			break;
		}
		if (dentry == parent)
			break;
		longer = prepend_name(scratch, start, dentry);
		if (longer >= PATH_ROOM) {
			scratch->start = start;
			return REASON_TOO_LONG;
		}
		start = longer;
		dentry = parent;
	}

	if (has_typed_cast) {
		struct mount *typed = bpf_rdonly_cast(mount, bpf_core_type_id_kernel(struct mount));

		mount_namespace = typed->mnt_ns;
		below = typed->mnt_parent;
		mountpoint = typed->mnt_mountpoint;
	} else {
		mount_namespace = BPF_CORE_READ(mount, mnt_ns);
		below = BPF_CORE_READ(mount, mnt_parent);
		mountpoint = BPF_CORE_READ(mount, mnt_mountpoint);
	}

	scratch->start = start;
	if (start == PATH_ROOM && !at_root) {
		/* a memfd and its like: no directory, an internal mount, a name that its maker chose */
		start = prepend_name(scratch, PATH_ROOM, dentry);
		if (start < PATH_ROOM)
			scratch->start = start;
		return REASON_MEMFD;
	}
	/* The usual case in a container: its root mount lies directly on the namespace's root. */
	if (!(at_root && below == top && mountpoint == top->mnt.mnt_root)) {
		int result = CLIMB_MORE;

		scratch->dentry = dentry;
		scratch->mount = mount;
		for (int i = 0; i < CLIMBS; i++)
			if (result == CLIMB_MORE)
				result = climb(slot);
		barrier();
		if (result == CLIMB_TOO_LONG)
			return REASON_TOO_LONG;
		if (result != CLIMB_TOP)
			return REASON_UNRESOLVED;
		/* a tree that was taken off while we climbed ends early and must not pass for a short path */
		if (mount_namespace == namespace && scratch->mount != top)
			return REASON_UNRESOLVED;
	}
	if (unlinked)
		return REASON_UNLINKED;
	if (mount_namespace != namespace)
		return REASON_FOREIGN_MOUNT;
	return PATH_ROOM - scratch->start > path_bytes_max ? REASON_TOO_LONG : REASON_NONE;
}

#endif
