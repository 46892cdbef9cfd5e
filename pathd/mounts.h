/*
 * SPDX-License-Identifier: ISC
 *
 * Which roots have a file system below them that may not answer, kept up to
 * date as mounts come and go.
 */
#ifndef ABX_PATHD_MOUNTS_H
#define ABX_PATHD_MOUNTS_H

#include "pathd/walk.h"

struct event_base;

/* Before confinement: open the kernel's list and mark the roots, which must
 * stay where they are.  Where /proc has no list that is logged, and a root is
 * judged by its own file system alone. */
void mounts_open(struct walk_roots *);
/* Look again whenever the list changes.  Fatal at start only. */
void mounts_start(struct event_base *);

/*
 * Take the next line of /proc/pid/mountinfo (proc_pid_mountinfo(5)), without
 * its newline and in place: 1 with the mount point, octal escapes decoded, and
 * the type of its file system, both inside line; 0 when it is none.
 */
int mounts_line(char *line, const char **point, const char **type);
/* 1 when a file system of that type answers without a network or another
 * process; what is not known to is taken not to. */
int mounts_is_local(const char *type);

#endif
