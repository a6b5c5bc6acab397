/*
 * place ROOT CGROUP: the first process of a place like a container's: in that cgroup, in a mount namespace of
 * its own whose root is ROOT (a mount point). Mounts /proc where ROOT has the directory, and the host's
 * cgroup tree at /host-cgroups, as a privileged container may see it. Prints "ready".
 *
 * Then it starts programs: a request on standard input is the argument strings, each ended by a NUL, and one
 * more NUL; an answer on standard output is a line: "ran" (and exited with 0), "exit N", "signal N", or the
 * errno's name if the exec failed. The programs' own output goes to standard error. The first argument is the
 * path; where it is
 * "@" followed by a path, that is the directory to stand in, and the next argument is the path.
 */
#include "exec-report.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ARGUMENTS 32
#define MAX_REQUEST (256 * 1024)

static void enter_root(const char *root)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		cannot_attempt("private mount namespace");
	if (chdir(root) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
		cannot_attempt(root);
	if (access("/proc", F_OK) == 0 && mount("proc", "/proc", "proc", 0, NULL))
		cannot_attempt("/proc");
	if (access("/host-cgroups", F_OK) == 0 && mount("cgroup2", "/host-cgroups", "cgroup2", 0, NULL))
		cannot_attempt("/host-cgroups");
}

static void answer(int failure, int status)
{
	if (failure)
		puts(errno_name(failure));
	else if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		printf("exit %d\n", WEXITSTATUS(status));
	else
		puts("ran");
	fflush(stdout);
}

/* In the vforked child: does not return. The failure is left in memory that the parent shares. */
static void become(char **arguments, volatile int *failure)
{
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (arguments[0][0] != '@')
		execve(arguments[0], arguments, environ);
	else if (chdir(arguments[0] + 1) == 0)
		execve(arguments[1], arguments + 1, environ);
	*failure = errno;
	_exit(127);
}

static void serve(char **const request)
{
	volatile int failure = 0;
	int status = 0;
	pid_t child = vfork();

	if (child == 0)
		become(request, &failure);
	if (child < 0)
		failure = errno;
	else
		while (waitpid(child, &status, 0) < 0)
			if (errno != EINTR)
				cannot_attempt("waitpid");
	answer(failure, status);
}

/* Reads one request into the buffer. 0 at the end of the input. */
static int read_request(char *buffer, char **arguments)
{
	size_t length = 0, start = 0;
	int count = 0, character;

	while ((character = getchar()) != EOF) {
		if (length + 1 >= MAX_REQUEST || count + 1 >= MAX_ARGUMENTS)
			return 0;
		buffer[length++] = character;
		if (character)
			continue;
		if (length - start == 1) {
			arguments[count] = NULL;
			return count;
		}
		arguments[count++] = buffer + start;
		start = length;
	}
	return 0;
}

int main(int count, char **arguments)
{
	static char buffer[MAX_REQUEST];
	char *request[MAX_ARGUMENTS];

	if (count != 3) {
		fputs("usage: place ROOT CGROUP\n", stderr);
		return REPORT_USAGE;
	}
	join_cgroup(arguments[2]);
	enter_root(arguments[1]);
	puts("ready");
	fflush(stdout);
	while (read_request(buffer, request))
		serve(request);
	return 0;
}
