/*
 * The first process of a pod's sandbox: does nothing, and ends at once on SIGTERM or SIGINT. As process 1 of
 * a pid namespace it would ignore both without a handler.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void end(int signal_number)
{
	_exit(0);
}

int main(void)
{
	struct sigaction ending = {.sa_handler = end};
	/* The kernel reaps orphans for a process that ignores SIGCHLD. */
	struct sigaction reaping = {.sa_handler = SIG_IGN};

	if (sigaction(SIGTERM, &ending, NULL) || sigaction(SIGINT, &ending, NULL) ||
	    sigaction(SIGCHLD, &reaping, NULL))
		return 1;
	for (;;)
		pause();
}
