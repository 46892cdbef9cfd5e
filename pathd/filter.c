/*
 * SPDX-License-Identifier: ISC
 *
 * The seccomp filter of pathd and, by inheritance, of its workers: the file
 * system, pipes, and processes made by fork.  No execve, no socket of the
 * network, no new namespace; files are confined by Landlock, not here.
 */
#include <sys/prctl.h>
#include <sys/socket.h>

#include <linux/fs.h>

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "pathd/filter.h"

#define ALL 0xffffffffffffffffULL
/* What fork(3) passes to clone: the exit signal and two tid addresses. */
#define FORK_FLAGS (0xffULL | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)

const struct jail_call pathd_calls[] = {
    /* walking and looking */
    {"openat", 0, 0, 0, 0},
    {"openat2", 0, 0, 0, 0},
    {"newfstatat", 0, 0, 0, 0},
    {"statx", 0, 0, 0, 0},
    {"fstatfs", 0, 0, 0, 0},
    {"timerfd_create", 1, 0, ALL, CLOCK_REALTIME}, /* is the clock set? */
    {"readlinkat", 0, 0, 0, 0},
    {"getdents64", 0, 0, 0, 0},
    {"inotify_init1", 0, 0, 0, 0},
    {"inotify_add_watch", 0, 0, 0, 0},
    {"inotify_rm_watch", 0, 0, 0, 0},
    /* names */
    {"mkdirat", 0, 0, 0, 0},
    {"unlinkat", 0, 0, 0, 0},
    {"linkat", 0, 0, 0, 0},
    {"symlinkat", 0, 0, 0, 0},
    {"renameat", 0, 0, 0, 0},
    {"renameat2", 0, 0, 0, 0},
    {"umask", 0, 0, 0, 0},
    /* content; a mode never has set-id or sticky bits */
    {"fchmod", 1, 1, 07000, 0},
    /* a directory of a workspace that its owner must get into to remove it */
    {"fchmodat", 1, 2, ALL, 0700},
    {"ftruncate", 0, 0, 0, 0},
    {"fsync", 0, 0, 0, 0},
    {"splice", 0, 0, 0, 0},
    {"copy_file_range", 0, 0, 0, 0},
    {"ioctl", 1, 1, ALL, FICLONE},
    {"pipe2", 0, 0, 0, 0},
    /* workers: forked, killed when they hang, reaped */
    {"socketpair", 1, 0, ALL, AF_UNIX},
    {"clone", 1, 0, ~FORK_FLAGS, 0},
    {"set_robust_list", 0, 0, 0, 0},
    {"getppid", 0, 0, 0, 0},
    {"prctl", 1, 0, ALL, PR_SET_PDEATHSIG},
    /* the process that parses archives confines itself further */
    {"prctl", 1, 0, ALL, PR_SET_NO_NEW_PRIVS},
    {"prlimit64", 1, 0, 0xffffffff, 0},
    {"seccomp", 0, 0, 0, 0},
    {"dup3", 0, 0, 0, 0}, /* not every machine has dup2 */
    {"pwrite64", 0, 0, 0, 0},
    {"close_range", 0, 0, 0, 0},
    {"kill", 1, 1, ALL, SIGKILL},
    {"tgkill", 1, 2, ALL, SIGABRT}, /* abort(3), of each worker */
    {"wait4", 0, 0, 0, 0},
    {NULL, 0, 0, 0, 0},
};
