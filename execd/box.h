/*
 * SPDX-License-Identifier: ISC
 *
 * The sandboxes of sessions from inside: what box.c (the life of one) and
 * session.c (which run goes where) share.
 */
#ifndef ABX_EXECD_BOX_H
#define ABX_EXECD_BOX_H

#include <event2/event_struct.h>

#include "execd/job_int.h"
#include "execd/session.h"
#include "execd/spare.h"

enum box_state {
	BOX_START, /* it is built */
	BOX_READY, /* runs may be in it */
	BOX_END	   /* no new run; it ends when the last one has */
};
struct box {
	struct box *next;
	char session[ABX_WORKSPACE_LEN + 1];
	struct wbuf key; /* its binds */
	enum box_state state;
	pid_t bwrap; /* 0 when reaped */
	pid_t init;  /* the launcher outside, 0 when not known */
	int pidfd;   /* of it */
	int err;     /* bubblewrap's complaints */
	int init_gone;
	struct chan *chan; /* to the launcher; NULL when it is gone */
	struct spares spares;
	size_t njobs;  /* runs that have their place here */
	uint64_t used; /* when the last one left, microseconds */
	int looked;    /* READY without a run: kept is known */
	uint64_t kept; /* bytes in its tmpfs then, 0 when not known */
	struct xl_ready ready;
	struct cgroup *group;	    /* of its runs' groups; NULL: none */
	struct cgroup *own;	    /* in it, of its own processes */
	struct absent_refs *absent; /* placeholders among its binds */
	struct event init_ev;	    /* the launcher's end */
	struct event clock;	    /* START: to be ready; READY: without a run;
				     * END: to be gone */
};

extern struct box *boxes;

/* Build one.  NULL with errno.  The key is copied. */
struct box *box_new(
    const char *session, const struct wbuf *key, const struct profile_binds *);
/* A run takes its place, and leaves it.  Behind the last one the sandbox is
 * kept for a while, or ends; box_left may free it. */
void box_enter(struct box *);
void box_left(struct box *);
/* No new run; it ends at once when none is in it.  May free it. */
void box_end(struct box *);

/* session.c: it is ready; job_placed for those that wait. */
void session_ready(struct box *);
/* session.c: it could not be built; every run in it fails. */
void session_failed(struct box *, const struct spawn_failed *);
/* session.c: it is gone.  It is freed behind this, or with its last run. */
void session_gone(struct box *);
/* session.c: one was freed; answer who waited for it. */
void session_settle(void);

#endif
