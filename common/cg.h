/*
 * SPDX-License-Identifier: ISC
 *
 * Control groups of version 2 as files, by descriptor of a group's directory
 * (cgroups(7) and the kernel's admin-guide/cgroup-v2.rst).  What the parent,
 * which makes the layout, and execd, which makes a group a run, have in
 * common.  Knows neither names nor limits.
 */
#ifndef ABX_CG_H
#define ABX_CG_H

#include <stddef.h>
#include <stdint.h>

#define CG_TEXT_MAX 512 /* bytes of a file that is read whole, and NUL */

/* ---- pure ---- */

/* The group of /proc/self/cgroup's text (the "0::" line), an absolute path.
 * 0, or -1 when there is none, or one that lies outside of what this process
 * may name ("..") or is removed. */
int cg_own(const char *text, char *path, size_t size);
/* The number behind key in "key N" lines, as of memory.events: 0, or -1. */
int cg_number(const char *text, const char *key, uint64_t *n);
/* Is the word in a list with spaces, as of cgroup.controllers? */
int cg_has(const char *list, const char *word);

/* ---- files; 0 or -1 with errno ---- */

/* The file's text without its last newline. */
int cg_read(int dir, const char *name, char text[CG_TEXT_MAX]);
int cg_write(int dir, const char *name, const char *text);
/* Write and read back: what is there now must be the same text, else EIO. */
int cg_set(int dir, const char *name, const char *text);
/* The directory name below dir, made when it is missing: a descriptor. */
int cg_open(int dir, const char *name, int make);
/* The names of groups directly in it that begin so, owned: 0, or -1 with errno
 * and those that were found. */
int cg_below(int dir, const char *prefix, char ***names, size_t *n);
/* Kill all processes in it and below; ENOENT before Linux 5.14. */
int cg_kill(int dir);
/* Kill what is in the group name and remove it with all groups below; EBUSY
 * while its processes are dying, ENOENT when it is gone. */
int cg_remove(int dir, const char *name);

#endif
