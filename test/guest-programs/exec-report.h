/* How every program here tells what became of an exec: one exit code per outcome, the errno's name in words.
 */
#ifndef EXEC_REPORT_H
#define EXEC_REPORT_H

#include <stdint.h>
#include <sys/types.h>

enum exec_report {
	REPORT_RAN = 0,
	REPORT_USAGE = 2,
	/* The exec was refused with EPERM, as a denied exec is. */
	REPORT_DENIED = 66,
	/* The exec failed with another errno. */
	REPORT_FAILED = 67,
	/* What precedes the exec failed: the attempt proves nothing. */
	REPORT_NOT_ATTEMPTED = 68,
};

/* The errno's symbolic name ("EPERM"), or its number in decimal if the C library knows no name. */
const char *errno_name(int number);

/* To be called right after an exec returned: prints "exec: <errno>" on standard output and returns the exit
 * code. */
int report_exec_failure(void);

/* Prints what could not be prepared, and why, and ends the program with REPORT_NOT_ATTEMPTED. */
void cannot_attempt(const char *what) __attribute__((noreturn));

/* Writes the text to the file in one call, or ends the program with REPORT_NOT_ATTEMPTED. */
void write_text(const char *path, const char *text);

/* Moves the calling process into the cgroup of that directory, or ends the program with REPORT_NOT_ATTEMPTED.
 */
void join_cgroup(const char *directory);

/*
 * Enters a container-like place if the environment says so: ENTER_CGROUP is a cgroup's directory, ENTER_PID a
 * process whose mount namespace is entered (either may be missing). What follows happens inside, by a process
 * whose parent is outside, as with a runtime's exec, and with no exec on the way in. To be called first; ends
 * the program with REPORT_NOT_ATTEMPTED where it fails.
 */
void enter_place(void);

/* Starts path in a vforked child. Returns 0 if it ran and exited with 0, else the exec's errno, or -1. */
int spawn_and_wait(const char *path);

/* A decimal argument within [low, high], or a message that names it and exit code REPORT_USAGE. */
long number_argument(const char *name, const char *text, long low, long high);

#endif
