/*
 * SPDX-License-Identifier: ISC
 *
 * The supervisors of a session's sandbox: one is asked of its launcher for
 * each run, and some wait for the next runs.
 */
#ifndef ABX_EXECD_SPARE_H
#define ABX_EXECD_SPARE_H

#include <sys/types.h>

#include <event2/event_struct.h>

#define SPARES_MAX 4 /* that wait: as many as were asked for at once */
#define SPARE_FDS 3  /* descriptors of one */

struct box;
struct cgroup;
struct chan;
struct job;

struct spare {
	struct box *box;
	struct chan *chan; /* NULL: there is none */
	pid_t pid;	   /* outside; 0: it did not say HELLO yet */
	int pidfd;
	/* The group of the next run when it is placed or on the way there, else
	 * that of the last one, or NULL. */
	struct cgroup *group;
	int placed;
	uint64_t moving; /* 0: it is not */
};
struct spares {
	struct spare v[SPARES_MAX];
	struct event place; /* to place them, behind this turn of the loop */
	unsigned ngroups;   /* that were made for them */
};

/* Of a new sandbox. */
void spares_init(struct box *);
/* Let go of all: they end by themselves. */
void spares_drop(struct box *);
/* How many there are. */
size_t spares_count(const struct box *);
/* Ask for one when there is none.  Best effort: without one the next run waits
 * a little longer. */
void spares_want(struct box *);

/* Give the run a supervisor of this sandbox, or one that will be forked: its
 * channel, its pid when it is known, and its group when it is in one of its
 * own, or on the way there.  0, or -1 with errno. */
int box_super(struct box *, struct job *);
/* The run is over: its supervisor, if nothing is left below it, waits for
 * another one.  j->chan, j->pidfd and j->group are given up then. */
void box_keep(struct box *, struct job *);

#endif
