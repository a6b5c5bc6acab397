#include "exec-report.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *errno_name(int number)
{
	static char digits[16];
	const char *name = strerrorname_np(number);

	if (name)
		return name;
	snprintf(digits, sizeof(digits), "%d", number);
	return digits;
}

int report_exec_failure(void)
{
	int number = errno;

	printf("exec: %s\n", errno_name(number));
	fflush(stdout);
	return number == EPERM ? REPORT_DENIED : REPORT_FAILED;
}

void cannot_attempt(const char *what)
{
	fprintf(stderr, "not attempted: %s: %s\n", what, errno_name(errno));
	_exit(REPORT_NOT_ATTEMPTED);
}

void write_text(const char *path, const char *text)
{
	size_t length = strlen(text);
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, length) != (ssize_t)length)
		cannot_attempt(path);
	close(file);
}

void join_cgroup(const char *directory)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/cgroup.procs", directory);
	write_text(path, "0");
}

void enter_place(void)
{
	const char *cgroup = getenv("ENTER_CGROUP"), *pid = getenv("ENTER_PID");
	char path[64];
	int namespace;

	if (pid) {
		snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
		namespace = open(path, O_RDONLY | O_CLOEXEC);
		if (namespace < 0)
			cannot_attempt(path);
	}
	if (cgroup)
		join_cgroup(cgroup);
	if (pid && setns(namespace, CLONE_NEWNS))
		cannot_attempt("ENTER_PID");
	if (pid)
		close(namespace);
	unsetenv("ENTER_CGROUP");
	unsetenv("ENTER_PID");
}

int spawn_and_wait(const char *path)
{
	/* Written by the child, which shares our memory until it execs: the one way to tell an errno from an
	 * exit code. */
	volatile int failure = 0;
	char *arguments[] = {(char *)path, NULL};
	char *environment[] = {NULL};
	int status;
	pid_t child = vfork();

	if (child < 0)
		return errno;
	if (child == 0) {
		execve(path, arguments, environment);
		failure = errno;
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (failure)
		return failure;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

long number_argument(const char *name, const char *text, long low, long high)
{
	char *end = NULL;
	long value;

	errno = 0;
	value = text ? strtol(text, &end, 10) : 0;
	if (!text || errno || end == text || *end || value < low || value > high) {
		fprintf(stderr, "%s: expected a number from %ld to %ld, got \"%s\"\n", name, low, high,
			text ? text : "");
		exit(REPORT_USAGE);
	}
	return value;
}
