/*
 * SPDX-License-Identifier: ISC
 *
 * Processes that outlive the request that started them: their life, and the
 * operations on them.
 */
#ifndef ABX_MONITOR_PROC_H
#define ABX_MONITOR_PROC_H

#include <stdint.h>

#include "common/imsg.h"

struct peer;
struct proc;
struct req;

/* proc.c */

/* Start-up: the clock that forgets what ended long ago. */
void proc_init(void);
/* Make room for what r is about to start, and note it as starting: 0, or -1
 * and r was answered. */
int proc_reserve(struct req *);
/* It was not started: forget the note, if there is one. */
void proc_release(struct req *);
/* STARTED of r: the process is there, and r is answered. */
void proc_started(struct req *, uint32_t pid);
/* The running process with that number on that execd, or NULL. */
struct proc *proc_by_run(const struct peer *, uint64_t run);
/* END of a process: 0, or -1 when malformed. */
int proc_end(struct proc *, const struct imsg *);
/* That execd is gone, and all that ran there. */
void proc_peer_lost(struct peer *);
/* Kill all (panic), or those whose principal the configuration no longer
 * knows. */
void proc_kill_all(void);
void proc_revoke(void);
/* The process of the caller's that the argument id names; NULL, and r was
 * answered. */
struct proc *proc_of(struct req *);
/* The first in the table, newest first; all owners. */
struct proc *proc_first(void);
int proc_is_mine(const struct req *, const struct proc *);

/* proc_ops.c: the operations. */
void proc_list(struct req *, int *fd);
void proc_get(struct req *, int *fd);
void proc_output(struct req *, int *fd);
void proc_stdin(struct req *, int *fd);
void proc_wait(struct req *, int *fd);
void proc_signal(struct req *, int *fd);
/* {"id",...} of one process as a new string, NULL when out of memory. */
char *proc_json(const struct proc *);
/* Answer those who wait for it. */
void proc_wake(struct proc *);
/* r waits for nothing any more. */
void proc_unwait(struct req *);
/* ME_RUN and ME_DONE of r: 0, or -1 when it did not ask for that. */
int proc_follow_ans(struct req *, struct imsg *);
int proc_done(struct req *, struct imsg *);

#endif
