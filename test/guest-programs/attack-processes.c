/* Attempts that change what the process is: its namespaces, its parent, its thread, its cgroup. */
#include "attack.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 65536
#define ORPHAN_POLL_US 1000

static void enter_mount_namespace(const char *pid)
{
	char path[64];
	int namespace;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0)
		cannot_attempt(path);
	if (setns(namespace, CLONE_NEWNS))
		cannot_attempt("setns");
	close(namespace);
}

/* With the host's pids in sight, another process's mount namespace is one call away. */
int setns_mount(char **arguments)
{
	enter_mount_namespace(arguments[0]);
	return exec_path(arguments[1]);
}

static void tell(int outcome, int code)
{
	if (write(outcome, &code, sizeof(code)) != sizeof(code))
		code = REPORT_NOT_ATTEMPTED;
	_exit(code);
}

/*
 * Execs in a process whose parent is gone, and so has been replaced by a process outside the container (where
 * the container shares the host's pids). The caller stays as the grandparent and returns the outcome: the
 * pipe carries an exit code, or ends without a word when a program that ran has ended.
 */
static int exec_as_orphan(const char *path)
{
	int outcome[2], code;
	pid_t child, middle;

	if (pipe(outcome))
		cannot_attempt("pipe");
	child = fork();
	if (child < 0)
		cannot_attempt("fork");
	if (child > 0) {
		close(outcome[1]);
		waitpid(child, NULL, 0);
		return read(outcome[0], &code, sizeof(code)) == sizeof(code) ? code : REPORT_RAN;
	}
	middle = getpid();
	child = fork();
	if (child < 0)
		tell(outcome[1], REPORT_NOT_ATTEMPTED);
	if (child > 0)
		_exit(0);
	while (getppid() == middle)
		usleep(ORPHAN_POLL_US);
	code = exec_path(path);
	tell(outcome[1], code);
	return code;
}

/* The other namespace with a parent outside, as a runtime's helper looks. */
int orphaned_setns(char **arguments)
{
	enter_mount_namespace(arguments[0]);
	return exec_as_orphan(arguments[1]);
}

int orphan(char **arguments)
{
	return exec_as_orphan(arguments[0]);
}

/* A child that shares its parent's memory, as a runtime's vforked child does, but of a parent inside. */
int vfork_child(char **arguments)
{
	int status;
	pid_t child = vfork();

	if (child < 0)
		cannot_attempt("vfork");
	if (child == 0)
		_exit(exec_path(arguments[0]));
	if (waitpid(child, &status, 0) != child)
		cannot_attempt("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : REPORT_NOT_ATTEMPTED;
}

static volatile int sibling_code = REPORT_RAN;

static int exec_for_sibling(void *path)
{
	sibling_code = exec_path(path);
	_exit(sibling_code);
}

/* As above, but the child's parent is our own parent, which may be outside. We cannot wait for such a child.
 */
int vfork_sibling(char **arguments)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int alive[2];
	char nothing;

	if (stack == MAP_FAILED || pipe(alive))
		cannot_attempt("stack and pipe");
	if (clone(exec_for_sibling, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD,
		  arguments[0]) < 0)
		cannot_attempt("clone");
	close(alive[1]);
	/* The program that ran inherited the other end: our read returns when it has ended. */
	if (sibling_code == REPORT_RAN && read(alive[0], &nothing, 1) != 0)
		return REPORT_NOT_ATTEMPTED;
	return sibling_code;
}

/* The host's mount namespace and shared memory, as a runtime's helper has them, but shared with a task
 * inside. */
int setns_vfork(char **arguments)
{
	enter_mount_namespace(arguments[0]);
	return vfork_child(arguments + 1);
}

/* As above, and the parent is outside: only the memory is not the parent's. */
int setns_vfork_sibling(char **arguments)
{
	enter_mount_namespace(arguments[0]);
	return vfork_sibling(arguments + 1);
}

static void *exec_in_thread(void *argument)
{
	_exit(exec_path(argument));
}

/* An exec by a thread that is not the process's first. */
int other_thread(char **arguments)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, exec_in_thread, arguments[0]))
		cannot_attempt("pthread_create");
	pthread_join(thread, NULL);
	return REPORT_NOT_ATTEMPTED;
}

/* A container that sees the host's cgroup tree moves itself out of its own. */
int leave_cgroup(char **arguments)
{
	join_cgroup(arguments[0]);
	return exec_path(arguments[1]);
}
