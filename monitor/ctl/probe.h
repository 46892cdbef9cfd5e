/*
 * SPDX-License-Identifier: ISC
 *
 * Questions to this machine that abxctl doctor asks: kernel features,
 * bubblewrap, and what another user may do.
 */
#ifndef ABX_CTL_PROBE_H
#define ABX_CTL_PROBE_H

#include <sys/types.h>

/* Do something in a child process as another user (uid 0: as this one).  fn
 * returns 0 or an errno; -1 when the child could not be made or died. */
int probe_as(uid_t uid, gid_t gid, int (*fn)(const void *), const void *arg);
/* For probe_as: a new user and mount namespace can be made (arg unused). */
int probe_userns(const void *arg);
/* For probe_as: a directory (arg is its path) can be listed and entered. */
int probe_directory(const void *arg);

/* 1 when the kernel filters system calls and can kill for one. */
int probe_seccomp(void);
/* 1 when openat2(2) works; 0 with errno. */
int probe_openat2(void);
/* 1 when cgroup v2 is mounted at /sys/fs/cgroup. */
int probe_cgroup2(void);
/* Is Landlock built in and switched off?  0 when it is on or not there. */
int probe_landlock_off(void);
/* The number in a file of /proc/sys, -1 when there is none. */
long probe_sysctl(const char *name);
/* The first line of a file, cut to the buffer; 0 or -1. */
int probe_line(const char *path, char *line, size_t size);
/* Is something mounted below /proc, as containers cover parts of it?  Its
 * path; 0 or 1. */
int probe_proc_covered(char *path, size_t size);
/* Standard output and error of "path option", as a new string; NULL when it
 * cannot be run or fails. */
char *probe_output(const char *path, const char *option);

#endif
