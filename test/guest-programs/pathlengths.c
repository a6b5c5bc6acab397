/*
 * pathlengths: execs a program at paths of every length and shape and tells, compactly, what became of each.
 *
 *   pathlengths print lengths FROM TO            the paths that a policy has to list, one a line
 *   pathlengths print components COUNT...        (a path per number)
 *   pathlengths run SOURCE CGROUP lengths FROM TO
 *   pathlengths run SOURCE CGROUP components COUNT...
 *   pathlengths run SOURCE CGROUP deep LENGTH...  directories beyond PATH_MAX, by a relative path and by
 * execveat
 *
 * A length counts bytes, with the leading slash. SOURCE is hard-linked to each path if it can be, else
 * copied. All files are made first; then the process joins CGROUP ("-": stays) and execs. "run" prints one
 * line of JSON: for each variant the ranges of equal verdicts ("ran" or an errno's name), for example
 * {"listed":[[2,4095,"ran"]],"first":[[2,4095,"EPERM"]],"last":[[2,4095,"EPERM"]]}
 * "first" and "last" differ from the listed path in their first or last byte only.
 */
#include "exec-report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORTEST 2
#define LONGEST (PATH_MAX - 1)
#define COMPONENT 200
#define DEEPEST 65536

enum variant { LISTED, FIRST, LAST, VARIANTS };

static const char *const variant_names[VARIANTS] = {"listed", "first", "last"};

/* A path of that length: directories of COMPONENT - 1 times 'a'; the last byte tells a file from a directory.
 */
static void long_path(char *path, long length, enum variant variant)
{
	for (long i = 0; i < length; i++)
		path[i] = i % COMPONENT == 0 && i < length - 1 ? '/' : 'a';
	path[length - 1] = variant == LAST ? 'g' : 'f';
	if (variant == FIRST)
		path[1] = 'b';
	path[length] = '\0';
}

/* A path of so many components of one byte each. */
static void deep_path(char *path, long components, enum variant variant)
{
	for (long i = 0; i < components; i++) {
		path[2 * i] = '/';
		path[2 * i + 1] = 'c';
	}
	path[2 * components - 1] = variant == LAST ? 'g' : 'f';
	if (variant == FIRST)
		path[1] = components == 1 ? 'e' : 'd';
	path[2 * components] = '\0';
}

static void make_directories(char *path)
{
	/* Paths that follow each other mostly share their directories. */
	static char made[PATH_MAX];
	size_t length = strrchr(path, '/') - path;

	if (!strncmp(made, path, length) && made[length] == '\0')
		return;
	memcpy(made, path, length);
	made[length] = '\0';
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			cannot_attempt("mkdir");
		*slash = '/';
	}
}

static void copy_file(const char *source, const char *path)
{
	char buffer[65536];
	ssize_t length;
	int from = open(source, O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (from < 0 || to < 0)
		cannot_attempt("copy of SOURCE");
	while ((length = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, length) != length)
			cannot_attempt("copy of SOURCE");
	close(from);
	close(to);
}

static void place(const char *source, char *path)
{
	if (link(source, path) == 0 || errno == EEXIST)
		return;
	make_directories(path);
	if (link(source, path) && errno != EEXIST)
		copy_file(source, path);
}

static const char *verdict(const char *path)
{
	int outcome = spawn_and_wait(path);

	return outcome == 0 ? "ran" : outcome < 0 ? "failed" : errno_name(outcome);
}

/* Prints ranges of consecutive measures with equal verdicts. A measure of -1 ends the last range. */
static void print_verdict(long measure, const char *text)
{
	static long from = -1, to = -1;
	static char current[32];

	if (from >= 0 && (measure != to + 1 || strcmp(current, text))) {
		printf("[%ld,%ld,\"%s\"]%s", from, to, current, measure >= 0 ? "," : "");
		from = -1;
	}
	if (from < 0)
		from = measure;
	to = measure;
	snprintf(current, sizeof(current), "%s", text);
}

typedef void shape(char *path, long measure, enum variant variant);

static void print_paths(shape *make, const long *measures, int count)
{
	char path[PATH_MAX];

	for (int i = 0; i < count; i++) {
		make(path, measures[i], LISTED);
		puts(path);
	}
}

static void run_paths(shape *make, const long *measures, int count, const char *source, const char *cgroup)
{
	char path[PATH_MAX];

	for (int v = LISTED; v < VARIANTS; v++)
		for (int i = 0; i < count; i++) {
			make(path, measures[i], v);
			place(source, path);
		}
	if (strcmp(cgroup, "-"))
		join_cgroup(cgroup);
	for (int v = LISTED; v < VARIANTS; v++) {
		printf("%s\"%s\":[", v ? "," : "{", variant_names[v]);
		for (int i = 0; i < count; i++) {
			make(path, measures[i], v);
			print_verdict(measures[i], verdict(path));
		}
		print_verdict(-1, "");
		putchar(']');
	}
	puts("}");
}

/* The file's name fills up to the wanted length: after k directories, one slash and 1 to COMPONENT bytes. */
static void deep_name(char *name, long length)
{
	long bytes = (length - 2) % COMPONENT + 1;

	memset(name, 'h', bytes);
	name[bytes] = '\0';
}

/* Makes and enters directories, one by one from the root, and places the program in the last. */
static void enter_deep(const char *source, long length)
{
	char name[COMPONENT + 1];

	memset(name, 'a', COMPONENT - 1);
	name[COMPONENT - 1] = '\0';
	if (chdir("/"))
		cannot_attempt("/");
	for (long depth = 0; depth + COMPONENT + 2 <= length; depth += COMPONENT)
		if ((mkdir(name, 0755) && errno != EEXIST) || chdir(name))
			cannot_attempt("deep directory");
	deep_name(name, length);
	if (link(source, name) && errno != EEXIST)
		copy_file(source, name);
}

static const char *deep_verdict(long length, int by_descriptor)
{
	char name[COMPONENT + 1];
	char *arguments[] = {name, NULL};
	int status, directory = open(".", O_PATH | O_CLOEXEC);
	volatile int failure = 0;
	pid_t child;

	deep_name(name, length);
	child = vfork();
	if (child == 0) {
		if (by_descriptor)
			syscall(SYS_execveat, directory, name, arguments, environ, 0);
		else
			execve(name, arguments, environ);
		failure = errno;
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		cannot_attempt("vfork");
	close(directory);
	if (failure)
		return errno_name(failure);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "ran" : "failed";
}

static void run_deep(const long *lengths, int count, const char *source, const char *cgroup)
{
	for (int i = 0; i < count; i++)
		enter_deep(source, lengths[i]);
	if (strcmp(cgroup, "-"))
		join_cgroup(cgroup);
	for (int i = 0; i < count; i++) {
		enter_deep(source, lengths[i]);
		printf("%s\"%ld\":{\"relative\":\"%s\"", i ? "," : "{", lengths[i],
		       deep_verdict(lengths[i], 0));
		printf(",\"execveat\":\"%s\"}", deep_verdict(lengths[i], 1));
	}
	puts("}");
}

/* "FROM TO" as every number between, or the numbers as they are. */
static long *measures_of(const char *kind, int count, char **arguments, int *amount)
{
	int lengths = !strcmp(kind, "lengths"), deep = !strcmp(kind, "deep");
	long low = lengths ? SHORTEST
		   : deep  ? COMPONENT
			   : 1,
	     high = lengths ? LONGEST
		    : deep  ? DEEPEST
			    : LONGEST / 2;
	long *measures = calloc(LONGEST + count + 1, sizeof(long));

	if (!measures)
		cannot_attempt("memory");
	*amount = 0;
	if (lengths && count == 2) {
		long from = number_argument("FROM", arguments[0], low, high);
		long to = number_argument("TO", arguments[1], from, high);

		for (long length = from; length <= to; length++)
			measures[(*amount)++] = length;
	} else if (!lengths) {
		for (int i = 0; i < count; i++)
			measures[(*amount)++] = number_argument(kind, arguments[i], low, high);
	}
	return measures;
}

int main(int count, char **arguments)
{
	int running = count > 4 && !strcmp(arguments[1], "run");
	int kind_at = running ? 4 : 2, amount = 0;
	const char *kind = count > kind_at ? arguments[kind_at] : "";
	shape *make = !strcmp(kind, "lengths") ? long_path : !strcmp(kind, "components") ? deep_path : NULL;
	long *measures = NULL;

	enter_place();
	if (make || (running && !strcmp(kind, "deep")))
		measures = measures_of(kind, count - kind_at - 1, arguments + kind_at + 1, &amount);
	if (!amount || (!running && strcmp(arguments[1], "print"))) {
		fputs("usage: pathlengths print lengths FROM TO | print components COUNT... | run SOURCE "
		      "CGROUP lengths "
		      "FROM TO | run SOURCE CGROUP components COUNT... | run SOURCE CGROUP deep LENGTH...\n",
		      stderr);
		return REPORT_USAGE;
	}
	if (!running)
		print_paths(make, measures, amount);
	else if (make)
		run_paths(make, measures, amount, arguments[2], arguments[3]);
	else
		run_deep(measures, amount, arguments[2], arguments[3]);
	return 0;
}
