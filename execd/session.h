/*
 * SPDX-License-Identifier: ISC
 *
 * Sessions: runs that share a sandbox (design: session sandboxes), and their
 * common end.  A part of the job table.
 */
#ifndef ABX_EXECD_SESSION_H
#define ABX_EXECD_SESSION_H

#include <sys/types.h>
#include <stdint.h>

#include "execd/profile.h"
#include "execd/spare.h"

struct box; /* the sandbox of runs of one session */
struct job;

/*
 * Cancel everything of the session and answer ME_DONE of id: C_OK when nothing
 * of it is left, C_SRV_UNAVAILABLE when something cannot be killed.  At once
 * when there is nothing.
 */
void session_end(uint64_t id, const char *name);
/*
 * Give the run a place in a sandbox of its session with exactly these binds:
 * one that is there, or a new one.  j->box and j->chan are set then, and the
 * supervisor on that channel says HELLO.  0, or -1 with errno and nothing was
 * changed.
 */
int session_join(struct job *j, const struct profile_binds *);
/* The supervisor of the run was moved into its group (mover.h). */
void session_moved_cb(int err, void *job);
/* The supervisor of the run is there: when its sandbox is too, go on with
 * job_placed. */
void session_hello(struct job *j);
/* Something lies in the run's sandbox that should not: no new run gets in. */
void session_stale(struct job *j);
/* The run is over: it has no place any more.  Nothing without one. */
void session_leave(struct job *j);
/* Nothing is left of the run's own processes; nothing for those without a
 * session. */
void session_left(struct job *j);

/* No process of the sandbox is left. */
int box_gone(const struct box *);
/* Kill the sandbox from outside, with all that runs in it. */
void box_kill(struct box *);
/* What it shows (seen.h). */
const struct wbuf *box_seen(const struct box *);
/* The pipe with bubblewrap's complaints, -1 when closed. */
int box_err(const struct box *);
/* A child of ours was reaped; 1 when it was the bubblewrap of one. */
int box_reaped(pid_t pid);

/* Descriptors that the sandboxes of sessions have, and those of one. */
size_t session_fds(void);
#define BOX_FDS 6
#define SESSION_FDS (BOX_FDS + SPARE_FDS)

#endif
