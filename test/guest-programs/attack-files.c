/* Attempts with a file that is named in another way, has no name, or is not what its name once stood for. */
#include "attack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int exec_descriptor(int file)
{
	return exec_at(file, "", AT_EMPTY_PATH);
}

/* A name that a check on the string given to execve would compare instead of the file's path. */
int relative(char **arguments)
{
	if (chdir(arguments[0]))
		cannot_attempt(arguments[0]);
	return exec_path(arguments[1]);
}

int execveat_directory(char **arguments)
{
	int directory = open(arguments[0], O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		cannot_attempt(arguments[0]);
	return exec_at(directory, arguments[1], 0);
}

/* An empty path with a descriptor: the file keeps its path, so this is right for a listed program. */
int fexecve_file(char **arguments)
{
	int file = open(arguments[0], O_PATH | O_CLOEXEC);

	if (file < 0)
		cannot_attempt(arguments[0]);
	return exec_descriptor(file);
}

/* Malware without a file; the name is the attacker's choice, so it may look like a listed path. */
int memory_file(char **arguments)
{
	int file = memfd_create(arguments[1], 0);

	if (file < 0)
		cannot_attempt("memfd_create");
	copy_content(arguments[0], file);
	return exec_descriptor(file);
}

/* The shape in which runc runs its own copy: a sealed memory file through /proc/self/fd. */
int sealed_memory_file(char **arguments)
{
	char path[64];
	int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int file = memfd_create("runc_cloned:/proc/self/exe", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	if (file < 0)
		cannot_attempt("memfd_create");
	copy_content(arguments[0], file);
	if (fcntl(file, F_ADD_SEALS, seals))
		cannot_attempt("F_ADD_SEALS");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return exec_path(path);
}

/* An unlinked file keeps the name of the place it had, which may be a listed one. */
int unlinked_file(char **arguments)
{
	int writable, readable;

	if (unlink(arguments[1]) && access(arguments[1], F_OK) == 0)
		cannot_attempt(arguments[1]);
	writable = open(arguments[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (writable < 0)
		cannot_attempt(arguments[1]);
	copy_content(arguments[0], writable);
	close(writable); /* a file that is open for writing gives ETXTBSY */
	readable = open(arguments[1], O_RDONLY | O_CLOEXEC);
	if (readable < 0 || unlink(arguments[1]))
		cannot_attempt(arguments[1]);
	return exec_descriptor(readable);
}

/* A file that never had a name. */
int unnamed_file(char **arguments)
{
	char path[64];
	int readable, writable = open(arguments[1], O_RDWR | O_TMPFILE | O_CLOEXEC, 0755);

	if (writable < 0)
		cannot_attempt(arguments[1]);
	copy_content(arguments[0], writable);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", writable);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	if (readable < 0)
		cannot_attempt(path);
	close(writable);
	return exec_descriptor(readable);
}

/* A listed program's content replaced in place: the path stays what the policy lists. */
int overwritten_file(char **arguments)
{
	int writable = open(arguments[1], O_WRONLY | O_TRUNC | O_CLOEXEC);

	if (writable < 0)
		cannot_attempt(arguments[1]);
	copy_content(arguments[0], writable);
	close(writable);
	return exec_path(arguments[1]);
}
