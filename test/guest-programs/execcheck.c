/*
 * execcheck PATH: asks the kernel whether PATH may be executed, without executing it (AT_EXECVE_CHECK,
 * Linux 6.14). Prints "check: allowed" and exits with 0, or prints the errno's name and exits as every
 * program here does; 68 where the kernel does not know the flag.
 */
#include "exec-report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXECVE_CHECK 0x10000

int main(int count, char **arguments)
{
	char *checked[] = {arguments[1], NULL};

	enter_place();
	if (count != 2) {
		fputs("usage: execcheck PATH\n", stderr);
		return REPORT_USAGE;
	}
	if (syscall(SYS_execveat, AT_FDCWD, arguments[1], checked, environ, EXECVE_CHECK)) {
		if (errno == EINVAL)
			cannot_attempt("AT_EXECVE_CHECK");
		return report_exec_failure();
	}
	puts("check: allowed");
	return 0;
}
