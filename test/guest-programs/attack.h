/* The ways in which a container's process may try to start a program that its policy does not list. */
#ifndef ATTACK_H
#define ATTACK_H

#include "exec-report.h"

/*
 * One attempt. It gets the arguments behind the mode's name and execs; it returns the exit code to end with
 * if the exec did not replace the process.
 */
typedef int attack(char **arguments);

/* The exec itself, with one fixed argument and the caller's environment. Returns the exit code for its
 * failure. */
int exec_path(const char *path);
int exec_at(int directory, const char *path, int flags);

/* Appends the content of a file to an open one, or ends the program with REPORT_NOT_ATTEMPTED. */
void copy_content(const char *from, int to);

/* attack-files.c */
attack relative, execveat_directory, fexecve_file, memory_file, sealed_memory_file, unlinked_file,
    unnamed_file, overwritten_file;
/* attack-mounts.c */
attack chroot_path, open_tree_path, closed_open_tree, moved_out, bind_over, user_bind, user_chroot,
    user_pivot, user_open_tree, user_fsmount;
/* attack-processes.c */
attack setns_mount, orphaned_setns, setns_vfork, setns_vfork_sibling, vfork_child, vfork_sibling,
    other_thread, leave_cgroup, orphan;

#endif
