/*
 * attack MODE ARGUMENTS: tries to exec a program in the way that MODE names.
 *
 * Exit codes: whatever the program exits with if it ran; 66 if the exec gave EPERM; 67 for another errno; 68
 * if the way to the exec was already barred (a missing right, an old kernel), which proves nothing about the
 * exec.
 */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int plain(char **arguments)
{
	return exec_path(arguments[0]);
}

static const struct {
	const char *name;
	const char *arguments;
	int count;
	attack *run;
} modes[] = {
    {"plain", "PATH", 1, plain},
    {"relative", "DIRECTORY NAME", 2, relative},
    {"execveat", "DIRECTORY NAME", 2, execveat_directory},
    {"fexecve", "PATH", 1, fexecve_file},
    {"memfd", "SOURCE NAME", 2, memory_file},
    {"memfd-sealed", "SOURCE", 1, sealed_memory_file},
    {"unlinked", "SOURCE PLACE", 2, unlinked_file},
    {"unnamed", "SOURCE DIRECTORY", 2, unnamed_file},
    {"overwrite", "SOURCE TARGET", 2, overwritten_file},
    {"chroot", "ROOT PATH", 2, chroot_path},
    {"open-tree", "DIRECTORY NAME", 2, open_tree_path},
    {"open-tree-closed", "DIRECTORY NAME", 2, closed_open_tree},
    {"moved-out", "SOURCE DIRECTORY", 2, moved_out},
    {"bind-over", "SOURCE PLACE", 2, bind_over},
    {"user-bind", "SOURCE PLACE", 2, user_bind},
    {"user-chroot", "ROOT PATH", 2, user_chroot},
    {"user-pivot", "ROOT PATH", 2, user_pivot},
    {"user-open-tree", "DIRECTORY NAME", 2, user_open_tree},
    {"user-fsmount", "SOURCE NAME", 2, user_fsmount},
    {"setns", "PID PATH", 2, setns_mount},
    {"setns-orphan", "PID PATH", 2, orphaned_setns},
    {"setns-vfork", "PID PATH", 2, setns_vfork},
    {"setns-vfork-sibling", "PID PATH", 2, setns_vfork_sibling},
    {"orphan", "PATH", 1, orphan},
    {"vfork", "PATH", 1, vfork_child},
    {"vfork-sibling", "PATH", 1, vfork_sibling},
    {"thread", "PATH", 1, other_thread},
    {"leave-cgroup", "CGROUP_DIRECTORY PATH", 2, leave_cgroup},
};

#define MODES (sizeof(modes) / sizeof(modes[0]))

int exec_at(int directory, const char *path, int flags)
{
	char *arguments[] = {(char *)"attacked", NULL};

	syscall(SYS_execveat, directory, path, arguments, environ, flags);
	return report_exec_failure();
}

int exec_path(const char *path)
{
	char *arguments[] = {(char *)path, NULL};

	execve(path, arguments, environ);
	return report_exec_failure();
}

void copy_content(const char *from, int to)
{
	char buffer[65536];
	ssize_t length;
	int file = open(from, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		cannot_attempt(from);
	while ((length = read(file, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, length) != length)
			cannot_attempt("write of the copy");
	if (length < 0)
		cannot_attempt(from);
	close(file);
}

static int usage(void)
{
	fputs("usage: attack MODE ARGUMENTS, where MODE and ARGUMENTS are one of\n", stderr);
	for (size_t i = 0; i < MODES; i++)
		fprintf(stderr, "  %s %s\n", modes[i].name, modes[i].arguments);
	return REPORT_USAGE;
}

int main(int count, char **arguments)
{
	enter_place();
	for (size_t i = 0; count > 1 && i < MODES; i++)
		if (!strcmp(arguments[1], modes[i].name))
			return count == modes[i].count + 2 ? modes[i].run(arguments + 2) : usage();
	return usage();
}
