/*
 * execstorm [OPTIONS] LOOP...: starts programs over and over and counts what became of each exec.
 *
 * LOOP is PATH[,PATH...][@MICROSECONDS]: one child that execs its paths in turn, with a pause of up to that
 * many microseconds (pseudo-random, repeatable) after each. A child that pauses is what lets others preempt
 * it.
 *
 * Options: --seconds N (default 10); --count N: end as soon as the first path of the first loop was tried so
 * often; --cpu N: all children on that CPU; --fifo N: the first loop with that real-time priority;
 * --cgroup DIRECTORY: join it first. SIGTERM ends it early. In the end it prints one line of JSON:
 * {"seconds":1.5,"paths":{"/bin/a":{"ran":10,"denied":0,"other":0}}}
 * and exits with 0 whatever was counted.
 */
#include "exec-report.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_LOOPS 64
#define MAX_PATHS 64
#define LONGEST_RUN_S 86400

struct counts {
	const char *path;
	unsigned long ran, denied, other;
};

struct shared {
	volatile int ending;
	struct counts counts[MAX_PATHS];
};

struct loop {
	int paths[MAX_PATHS];
	int path_count;
	long pause_us;
	pid_t child;
};

struct options {
	double seconds;
	unsigned long count;
	int cpu, fifo;
	const char *cgroup;
};

static struct shared *shared;
static int known_paths;

static double monotonic_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void end_early(int signal_number)
{
	shared->ending = 1;
}

static unsigned long tried(const struct counts *counts)
{
	return counts->ran + counts->denied + counts->other;
}

static int path_index(const char *path)
{
	int i;

	for (i = 0; i < known_paths; i++)
		if (!strcmp(shared->counts[i].path, path))
			return i;
	if (known_paths == MAX_PATHS) {
		fprintf(stderr, "execstorm: more than %d paths\n", MAX_PATHS);
		exit(REPORT_USAGE);
	}
	shared->counts[known_paths].path = path;
	return known_paths++;
}

static void parse_loop(char *text, struct loop *loop)
{
	char *pause = strrchr(text, '@');

	if (pause) {
		*pause = '\0';
		loop->pause_us = number_argument("pause of a loop", pause + 1, 0, 10000000);
	}
	for (char *path = strtok(text, ","); path; path = strtok(NULL, ",")) {
		if (loop->path_count == MAX_PATHS) {
			fprintf(stderr, "execstorm: more than %d paths in a loop\n", MAX_PATHS);
			exit(REPORT_USAGE);
		}
		loop->paths[loop->path_count++] = path_index(path);
	}
	if (!loop->path_count) {
		fputs("execstorm: a loop without a path\n", stderr);
		exit(REPORT_USAGE);
	}
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		cannot_attempt("--cpu");
}

/* Several loops may count for the same path. */
static void count_one(struct counts *counts, int outcome)
{
	unsigned long *counter = outcome == 0	    ? &counts->ran
				 : outcome == EPERM ? &counts->denied
						    : &counts->other;

	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void run_loop(const struct loop *loop, double end, unsigned long limit)
{
	const struct counts *first = &shared->counts[0];
	unsigned int random = loop->paths[0] + 1;

	for (unsigned long round = 0; !shared->ending && monotonic_seconds() < end; round++) {
		struct counts *counts = &shared->counts[loop->paths[round % loop->path_count]];

		if (limit && tried(first) >= limit)
			shared->ending = 1;
		else
			count_one(counts, spawn_and_wait(counts->path));
		random = random * 1103515245 + 12345;
		if (loop->pause_us)
			usleep((random >> 8) % loop->pause_us);
	}
}

static void start_loop(struct loop *loop, const struct options *options, int first, double end)
{
	loop->child = fork();
	if (loop->child < 0)
		cannot_attempt("fork");
	if (loop->child > 0)
		return;
	if (options->cpu >= 0)
		pin(options->cpu);
	if (first && options->fifo) {
		struct sched_param priority = {.sched_priority = options->fifo};

		if (sched_setscheduler(0, SCHED_FIFO, &priority))
			cannot_attempt("--fifo");
	}
	run_loop(loop, end, options->count);
	_exit(0);
}

static int parse_options(int count, char **arguments, struct options *options)
{
	int i;

	for (i = 1; i < count && arguments[i][0] == '-'; i += 2) {
		const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;

		if (!strcmp(name, "--seconds"))
			options->seconds = number_argument(name, value, 1, LONGEST_RUN_S);
		else if (!strcmp(name, "--count"))
			options->count = number_argument(name, value, 1, 1000000000);
		else if (!strcmp(name, "--cpu"))
			options->cpu = number_argument(name, value, 0, CPU_SETSIZE - 1);
		else if (!strcmp(name, "--fifo"))
			options->fifo = number_argument(name, value, 1, 99);
		else if (!strcmp(name, "--cgroup") && value)
			options->cgroup = value;
		else
			return count;
	}
	return i;
}

static void print_counts(double seconds)
{
	printf("{\"seconds\":%.3f,\"paths\":{", seconds);
	for (int i = 0; i < known_paths; i++) {
		const struct counts *c = &shared->counts[i];

		printf("%s\"%s\":{\"ran\":%lu,\"denied\":%lu,\"other\":%lu}", i ? "," : "", c->path, c->ran,
		       c->denied, c->other);
	}
	puts("}}");
}

int main(int count, char **arguments)
{
	static struct loop loops[MAX_LOOPS];
	struct options options = {.seconds = 10, .cpu = -1};
	struct sigaction ending = {.sa_handler = end_early};
	int first_loop = parse_options(count, arguments, &options), loop_count = count - first_loop;
	double start;

	enter_place();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		cannot_attempt("mmap");
	if (loop_count < 1 || loop_count > MAX_LOOPS) {
		fprintf(
		    stderr,
		    "usage: execstorm [--seconds N] [--count N] [--cpu N] [--fifo N] [--cgroup DIRECTORY] "
		    "PATH[,PATH...][@MICROSECONDS]... (1 to %d loops)\n",
		    MAX_LOOPS);
		return REPORT_USAGE;
	}
	for (int i = 0; i < loop_count; i++)
		parse_loop(arguments[first_loop + i], &loops[i]);
	if (options.cgroup)
		join_cgroup(options.cgroup);
	sigaction(SIGTERM, &ending, NULL);
	start = monotonic_seconds();
	for (int i = 0; i < loop_count; i++)
		start_loop(&loops[i], &options, i == 0, start + options.seconds);
	for (int i = 0; i < loop_count; i++)
		while (waitpid(loops[i].child, NULL, 0) < 0 && errno == EINTR)
			continue;
	print_counts(monotonic_seconds() - start);
	return 0;
}
