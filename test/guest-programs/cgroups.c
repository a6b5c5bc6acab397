/*
 * cgroups MODE ARGUMENTS: what processes do with cgroups; without arguments it prints what there is.
 * DIRECTORY is a cgroup's directory. Exit codes as in exec-report.h.
 */
#include "bare.h"
#include "exec-report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_CLONE3 435
#define SHARE_MEMORY 0x100ULL
#define WAIT_FOR_EXEC 0x4000ULL
#define INTO_CGROUP 0x200000000ULL
#define MOST_CGROUPS 10000000
#define DEEPEST 1000

/* The kernel's struct clone_args up to its cgroup field. */
struct clone_into {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
	    set_tid_size, cgroup;
};

static int exec_here(char *path)
{
	char *arguments[] = {path, NULL};

	execve(path, arguments, environ);
	return report_exec_failure();
}

static void child_name(char *name, const char *directory, long number)
{
	snprintf(name, PATH_MAX, "%s/filled-%ld", directory, number);
}

static int churn(char **arguments)
{
	long count = number_argument("COUNT", arguments[1], 1, MOST_CGROUPS), repeated = 0, falling = 0;
	char name[PATH_MAX];
	uint64_t last = 0;

	snprintf(name, sizeof(name), "%s/churned", arguments[0]);
	for (long i = 0; i < count; i++) {
		struct stat status;

		if (mkdir(name, 0755) || stat(name, &status) || rmdir(name))
			cannot_attempt(name);
		repeated += status.st_ino == last;
		falling += status.st_ino < last;
		last = status.st_ino;
	}
	printf("{\"made\":%ld,\"repeated\":%ld,\"falling\":%ld}\n", count, repeated, falling);
	return 0;
}

static int fill(char **arguments)
{
	long count = number_argument("COUNT", arguments[1], 1, MOST_CGROUPS), made = 0;
	char name[PATH_MAX];

	for (; made < count; made++) {
		child_name(name, arguments[0], made);
		if (mkdir(name, 0755)) {
			if (errno != EAGAIN && errno != ENOSPC && errno != ENOMEM)
				cannot_attempt(name);
			break;
		}
	}
	printf("{\"made\":%ld}\n", made);
	return 0;
}

static int clear(char **arguments)
{
	char name[PATH_MAX];

	for (long i = 0;; i++) {
		child_name(name, arguments[0], i);
		if (rmdir(name)) {
			if (errno != ENOENT)
				cannot_attempt(name);
			return 0;
		}
	}
}

static int join(char **arguments)
{
	join_cgroup(arguments[0]);
	return exec_here(arguments[1]);
}

static int nested(char **arguments)
{
	long depth = number_argument("DEPTH", arguments[1], 1, DEEPEST);
	char name[PATH_MAX];
	size_t length = strlen(arguments[0]);

	if (length + depth * 2 >= sizeof(name))
		cannot_attempt("DIRECTORY");
	memcpy(name, arguments[0], length + 1);
	for (long i = 0; i < depth; i++) {
		strcat(name, "/n");
		if (mkdir(name, 0755) && errno != EEXIST)
			cannot_attempt(name);
	}
	join_cgroup(name);
	return exec_here(arguments[2]);
}

static int start_into(char **arguments, uint64_t flags)
{
	struct clone_into clone = {.flags = INTO_CGROUP | flags, .exit_signal = SIGCHLD};
	bool joins = false;
	int status, directory = open(arguments[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long child;

	if (directory < 0)
		cannot_attempt(arguments[0]);
	clone.cgroup = directory;
	/* Inlined: a child that shares this stack must not return from the function that made the call. */
	child = bare_call(NR_CLONE3, (long)&clone, sizeof(clone), 0);
	if (child == -EBADF) {
		/* A cgroup of version 1: as runtimes do there, the child moves before its exec. */
		joins = true;
		clone.flags = flags;
		child = bare_call(NR_CLONE3, (long)&clone, sizeof(clone), 0);
	}
	if (child == 0) {
		if (joins)
			join_cgroup(arguments[0]);
		_exit(exec_here(arguments[1]));
	}
	if (child < 0) {
		errno = -child;
		cannot_attempt("clone3");
	}
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		cannot_attempt("waitpid");
	return WEXITSTATUS(status);
}

static int into(char **arguments)
{
	return start_into(arguments, 0);
}

static int into_vfork(char **arguments)
{
	return start_into(arguments, SHARE_MEMORY | WAIT_FOR_EXEC);
}

static const struct {
	const char *name, *arguments, *meaning;
	int count;
	int (*run)(char **arguments);
} modes[] = {
    {"churn", "DIRECTORY COUNT",
     "makes and removes COUNT cgroups below it; prints how many ids came twice in a row or fell", 2, churn},
    {"fill", "DIRECTORY COUNT", "makes COUNT cgroups below it, or as many as the kernel lets it", 2, fill},
    {"clear", "DIRECTORY", "removes what fill made", 1, clear},
    {"join", "DIRECTORY PATH", "moves itself there and execs", 2, join},
    {"nested", "DIRECTORY DEPTH PATH", "makes DEPTH cgroups one in another, and execs in the innermost", 3,
     nested},
    {"into", "DIRECTORY PATH",
     "starts a child in it (CLONE_INTO_CGROUP, or by moving before the exec) that execs", 2, into},
    {"into-vfork", "DIRECTORY PATH", "the same with a child that shares our memory, as a runtime does", 2,
     into_vfork},
};

#define MODES (sizeof(modes) / sizeof(modes[0]))

int main(int count, char **arguments)
{
	enter_place();
	for (size_t i = 0; count > 1 && i < MODES; i++)
		if (!strcmp(arguments[1], modes[i].name) && count == modes[i].count + 2)
			return modes[i].run(arguments + 2);
	fputs("usage: cgroups MODE ARGUMENTS, where these are one of\n", stderr);
	for (size_t i = 0; i < MODES; i++)
		fprintf(stderr, "  %s %s: %s\n", modes[i].name, modes[i].arguments, modes[i].meaning);
	return REPORT_USAGE;
}
