/*
 * SPDX-License-Identifier: ISC
 *
 * The control groups of runs, below the directory "exec" of a delegated unit
 * (design: cgroup v2), which comes as a descriptor.  Without it everything
 * here does nothing and says so.  A group of a run is a leaf; one that others
 * lie in (a session's) may hold no process itself.
 */
#ifndef ABX_EXECD_CGROUP_H
#define ABX_EXECD_CGROUP_H

#include <sys/types.h>

#include <stdint.h>

struct cgroup;

struct cgroup_limits {
	uint64_t memory; /* bytes; 0: none */
	uint64_t procs;	 /* 0: none */
	int whole;	 /* with one process for want of memory all die */
};

/* What a group enforces. */
enum cgroup_holds { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4 };

/* Start-up.  exec is taken, -1 when nothing is delegated; the names of groups
 * begin with the generation, so that the parent finds those of a dead execd;
 * cpu_percent of one processor for each run, 0: no bound. */
void cgroup_init(int exec, uint32_t generation, uint32_t cpu_percent);
/* Use no groups from now on: those that there are stay. */
void cgroup_off(void);
/* enum cgroup_holds that a group can have; 0 when none are made. */
unsigned cgroup_can(void);
/* Are groups made at all? */
int cgroup_on(void);

/*
 * Make the group name (letters, digits, "-") in up, NULL: at the top.  0 with
 * *out NULL when groups are off; -1 with errno.  The first group in up makes
 * its controllers count there, which fails (EBUSY) when up holds a process.
 */
int cgroup_new(struct cgroup **out, struct cgroup *up, const char *name);
/* Remove it, before the group that it lies in; kill: with what is still in it.
 * When that takes a while the name is tried again later.  NULL is fine, as in
 * all below. */
void cgroup_free(struct cgroup *, int kill);
/* Try again what could not be removed: how many there still are. */
int cgroup_sweep(void);

/* Set the limits that the kernel can hold, and read each back: 0, or -1 with
 * errno, EIO when one is not what was set. */
int cgroup_limits(struct cgroup *, const struct cgroup_limits *);
/* enum cgroup_holds of the limits that were set. */
unsigned cgroup_holds(const struct cgroup *);
/* 1 when it holds memory, processes, and processor time if that is bound:
 * the layer "cgroup". */
int cgroup_layer(const struct cgroup *);

/* The group's directory (borrowed) for clone3(2), -1 without one. */
int cgroup_fd(const struct cgroup *);
/* The file that takes the processes of the group: a descriptor, owned by the
 * caller, or -1 with errno. */
int cgroup_procs(const struct cgroup *);
/* Put a process, numbered as this process sees it, into the group. */
int cgroup_put_pid(struct cgroup *, pid_t);
/* Kill all in it and below. */
void cgroup_kill(struct cgroup *);
/* Processes that were killed for want of memory. */
uint64_t cgroup_oom(const struct cgroup *);
/* The most memory that was in use at once, bytes; 0 when not known. */
uint64_t cgroup_peak(const struct cgroup *);
/* Bytes of memory that are a tmpfs's, or shared, with those of groups in it
 * that are removed; 0 when not known. */
uint64_t cgroup_shmem(const struct cgroup *);

#endif
