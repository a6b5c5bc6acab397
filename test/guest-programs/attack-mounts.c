/* Attempts that give a forbidden file the path of a listed one through mounts, roots and namespaces. */
#include "attack.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The new mount calls by number: the C library of a build machine may not declare them. Equal on all
 * architectures. */
#define NR_OPEN_TREE 428
#define NR_FSOPEN 430
#define NR_FSCONFIG 431
#define NR_FSMOUNT 432
#define TREE_CLONE 1
#define TREE_RECURSIVE 0x8000
#define CONFIG_CREATE 6

static int detached_tree(const char *directory, unsigned int flags)
{
	int tree = syscall(NR_OPEN_TREE, AT_FDCWD, directory, flags | O_CLOEXEC);

	if (tree < 0)
		cannot_attempt("open_tree");
	return tree;
}

static void write_identity(const char *file, unsigned int outside)
{
	char line[64];

	snprintf(line, sizeof(line), "0 %u 1", outside);
	write_text(file, line);
}

/* What "unshare -Ur" does: root of a user namespace of one's own, with a mount namespace to rearrange. */
static void enter_user_namespace(void)
{
	uid_t user = getuid();
	gid_t group = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		cannot_attempt("unshare");
	write_text("/proc/self/setgroups", "deny");
	write_identity("/proc/self/uid_map", user);
	write_identity("/proc/self/gid_map", group);
}

/* A root below which the forbidden file has a listed path. */
int chroot_path(char **arguments)
{
	if (chroot(arguments[0]) || chdir("/"))
		cannot_attempt("chroot");
	return exec_path(arguments[1]);
}

/* A detached copy of a directory: seen from its top, the file's path is what stands below that directory. */
int open_tree_path(char **arguments)
{
	return exec_at(detached_tree(arguments[0], TREE_CLONE), arguments[1], 0);
}

/* The same, with the tree's descriptor closed before the exec: its mounts have left their namespace. */
int closed_open_tree(char **arguments)
{
	int tree = detached_tree(arguments[0], TREE_CLONE);
	int file = openat(tree, arguments[1], O_PATH);

	if (file < 0)
		cannot_attempt(arguments[1]);
	close(tree);
	return exec_at(file, "", AT_EMPTY_PATH);
}

/*
 * A file that has left the part of its file system which its mount shows: looked at from that mount, its path
 * has no beginning.
 */
int moved_out(char **arguments)
{
	int directory, writable;

	if (chdir(arguments[1]) || mkdir("source", 0755) || mkdir("source/inner", 0755) ||
	    mkdir("shown", 0755))
		cannot_attempt(arguments[1]);
	writable = open("source/inner/tool", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (writable < 0)
		cannot_attempt("tool");
	copy_content(arguments[0], writable);
	close(writable);
	if (mount("source", "shown", NULL, MS_BIND, NULL))
		cannot_attempt("bind mount");
	directory = open("shown/inner", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || rename("source/inner", "outside"))
		cannot_attempt("rename");
	return exec_at(directory, "tool", 0);
}

static int bind_and_exec(char **arguments)
{
	if (mount(arguments[0], arguments[1], NULL, MS_BIND, NULL))
		cannot_attempt("bind mount");
	return exec_path(arguments[1]);
}

/* A privileged container covers a listed program in its own mount namespace. */
int bind_over(char **arguments)
{
	return bind_and_exec(arguments);
}

/* The same without any right, in a mount namespace of one's own. */
int user_bind(char **arguments)
{
	enter_user_namespace();
	return bind_and_exec(arguments);
}

int user_chroot(char **arguments)
{
	enter_user_namespace();
	return chroot_path(arguments);
}

/* A new root for the whole mount namespace: up to its very top, the path is the attacker's choice. */
int user_pivot(char **arguments)
{
	enter_user_namespace();
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cannot_attempt("private mounts");
	if (mount(arguments[0], arguments[0], NULL, MS_BIND | MS_REC, NULL) || chdir(arguments[0]))
		cannot_attempt(arguments[0]);
	if (syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
		cannot_attempt("pivot_root");
	return exec_path(arguments[1]);
}

int user_open_tree(char **arguments)
{
	enter_user_namespace();
	return exec_at(detached_tree(arguments[0], TREE_CLONE | TREE_RECURSIVE), arguments[1], 0);
}

/* A file system that is mounted nowhere. The name stands at its top, as a listed path's last part might. */
int user_fsmount(char **arguments)
{
	char path[64];
	int context, tree, writable, readable;

	enter_user_namespace();
	context = syscall(NR_FSOPEN, "tmpfs", 0);
	if (context < 0 || syscall(NR_FSCONFIG, context, CONFIG_CREATE, NULL, NULL, 0))
		cannot_attempt("fsopen");
	tree = syscall(NR_FSMOUNT, context, 0, 0);
	if (tree < 0)
		cannot_attempt("fsmount");
	writable = openat(tree, arguments[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (writable < 0)
		cannot_attempt(arguments[1]);
	copy_content(arguments[0], writable);
	close(writable);
	readable = openat(tree, arguments[1], O_RDONLY);
	if (readable < 0)
		cannot_attempt(arguments[1]);
	close(tree);
	close(context);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", readable);
	return exec_path(path);
}
