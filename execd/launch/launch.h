/*
 * SPDX-License-Identifier: ISC
 *
 * The launcher's own parts: PID 1 of a sandbox.  launch.c owns the status
 * socket and the order of things; init.c starts a program; super.c is what
 * only the supervisor of a session's run does; landlock.c is one layer.  libc,
 * common/wire imsg msg bpf and xl only.
 */
#ifndef ABX_LAUNCH_H
#define ABX_LAUNCH_H

#include <sys/types.h>

#include "execd/launch/xl.h"

#define LAUNCH_FD 3 /* the status socket, once the launcher runs */

/*
 * Everything below returns 0, or -1 with errno.
 */

/* Lower the inotify quotas of the sandbox's user namespace: they are counted
 * by uid, and pathd has the same. */
int init_quotas(void);
/* Make this process and what it starts the first to go when the host is out of
 * memory: what commands share or keep in memory files has no limit. */
int init_victim(void);
/* No core of this process or of what it starts, in no file and for no program
 * of the host; commands cannot change it (filter.c). */
int init_no_core(void);
/* Default actions for all signals, and all blocked: a program inherits the
 * first, and starts with none blocked. */
int init_signals(void);
/* Each namespace must be another than execd's: ENOTUNIQ when one is not, and
 * *bad is its name. */
int init_namespaces(const struct xl_setup *, const char **bad);
/* Empty the permitted, ambient and bounding sets and set no_new_privs. */
int init_caps(void);
/* Each path of the list must be the object that execd meant, and mounted there
 * as it meant: ESTALE when it is another or its mount is gone, and *bad says
 * which path failed.  When keep is one of them, *kept (NULL: keep nothing) is
 * its descriptor, O_PATH and the caller's; else, or on failure, -1. */
int init_check(
    const struct xl_setup *, const char *keep, int *kept, const char **bad);

/*
 * A process for one run of a session: child subreaper, so that whatever its
 * program starts hangs below it.  The socket becomes its LAUNCH_FD, and it has
 * no other descriptor; sock stays the caller's in the launcher.  The pid, 0 in
 * the new process, or -1.
 */
pid_t super_fork(int sock);
/* KILL everything right below this process; what hung below that is right
 * below it then, so this is said again, every SUPER_KILL_MS and at each end,
 * until no child is left.  A list that cannot be read ends the process, and
 * with it the sandbox. */
void super_kill(void);
#define SUPER_KILL_MS 10

/* Newest ABI of the running kernel, 0 without Landlock. */
int landlock_abi(void);
/* Enter one domain: the paths of the setup, no TCP, and from ABI 6 no
 * signals and no abstract sockets across its border.  A path that does not
 * exist is left out.  The kernel must have Landlock. */
int landlock_enter(const struct xl_setup *, int abi);
/* The rules of one more that forbids nothing, but that nothing beside it can
 * look into: a process may trace, and read in /proc as if it did, only what is
 * in its own domain or below that (kernel documentation, "Ptrace
 * restrictions").  Signals pass.  A descriptor, owned by the caller and good
 * for any number of domains; -1 with errno, ENOSYS without Landlock. */
int landlock_apart_set(void);
/* Enter a new domain of those rules.  System calls only. */
int landlock_apart(int set);

/* What a program is started with, all borrowed. */
struct start {
	const struct xl_run *run;
	int stdio[3]; /* -1: /dev/null */
	int cwd;      /* its directory, O_PATH; -1: by its path */
	int apart;    /* rules of landlock_apart_set; -1: none */
	const struct xl_filter *nofork;
};
/*
 * Start the program in a session of its own: descriptors, directory, limits,
 * domain, filter.  Waits for the execve.  The pid, or -1 and *fail says what
 * failed; nothing is left of the child then.
 */
pid_t init_start(const struct start *, struct spawn_failed *fail);

#endif
