/*
 * place ROOT CGROUP: the first process of a place like a container's: in that cgroup, in a mount namespace of
 * its own whose root is ROOT (a mount point). Mounts /proc where ROOT has the directory, and the host's
 * cgroup tree at /host-cgroups, as a privileged container may see it. Prints "ready".
 *
 * Then it serves: a request on standard input is a few strings, each ended by a NUL, and one more NUL; its
 * answer is a line on standard output. The first string decides:
 *
 * PATH ARGUMENT...     starts a program, whose output goes to standard error: "ran" (and exited with 0),
 * "exit N", "signal N", or the errno's name if the exec failed
 * "+" SOURCE PATH      makes a file of SOURCE's content there, and the directories on the way: "made"
 * "bind" SOURCE PLACE  mounts a directory or a file once more: "made"
 * "tmpfs" PLACE        mounts an empty file system: "made"
 * "name" PATH          the kernel's own name of the file, as in /proc/self/exe of a program that runs it
 *
 * What fails is answered with the errno's name.
 */
#include "exec-report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
	execve(arguments[0], arguments, environ);
	*failure = errno;
	_exit(127);
}

static void start_program(char **const request)
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

static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

/* A hard link where it can be, for its speed, else a copy. 0, or -1 and errno. */
static int make_file(const char *source, char *path)
{
	char buffer[65536];
	ssize_t length;
	int from, to;

	if (link(source, path) == 0)
		return 0;
	if (errno == ENOENT) {
		make_directories(path);
		if (link(source, path) == 0)
			return 0;
	}
	if (errno != EXDEV)
		return -1;
	from = open(source, O_RDONLY | O_CLOEXEC);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while (to >= 0 && (length = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, length) != length)
			break;
	close(from);
	return to < 0 ? -1 : close(to);
}

static int make_mount(const char *source, char *place)
{
	struct stat status;
	int is_file = source && stat(source, &status) == 0 && S_ISREG(status.st_mode);

	make_directories(place);
	if (is_file)
		close(open(place, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
	else
		mkdir(place, 0755);
	return source ? mount(source, place, NULL, MS_BIND, NULL) : mount("place", place, "tmpfs", 0, NULL);
}

static void tell_name(const char *path)
{
	char link[64], name[PATH_MAX * 2];
	int file = open(path, O_PATH | O_CLOEXEC);
	ssize_t length = -1;

	if (file >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
		length = readlink(link, name, sizeof(name) - 1);
		close(file);
	}
	name[length < 0 ? 0 : length] = '\0';
	puts(length < 0 ? errno_name(errno) : name);
	fflush(stdout);
}

static void made(int result)
{
	puts(result ? errno_name(errno) : "made");
	fflush(stdout);
}

static void serve(char **request, int count)
{
	if (count == 3 && !strcmp(request[0], "+"))
		made(make_file(request[1], request[2]));
	else if (count == 3 && !strcmp(request[0], "bind"))
		made(make_mount(request[1], request[2]));
	else if (count == 2 && !strcmp(request[0], "tmpfs"))
		made(make_mount(NULL, request[1]));
	else if (count == 2 && !strcmp(request[0], "name"))
		tell_name(request[1]);
	else
		start_program(request);
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
	int strings;

	if (count != 3) {
		fputs("usage: place ROOT CGROUP\n", stderr);
		return REPORT_USAGE;
	}
	join_cgroup(arguments[2]);
	enter_root(arguments[1]);
	puts("ready");
	fflush(stdout);
	while ((strings = read_request(buffer, request)))
		serve(request, strings);
	return 0;
}
