/*
 * SPDX-License-Identifier: ISC
 *
 * Moving processes between control groups without waiting for it.
 */
#ifndef ABX_EXECD_MOVER_H
#define ABX_EXECD_MOVER_H

#include <sys/types.h>

#include <stdint.h>

struct cgroup;
struct event_base;

/* How a move went: 0 or errno. */
typedef void (*mover_cb)(int err, void *arg);

/* Start-up, once the process is confined.  Without one, when it cannot be
 * started or ends, moves are made by this process, which waits. */
void mover_begin(struct event_base *);
/* Move a process, numbered as this process sees it, into the group: 1 when it
 * is there, 0 when it is on the way, -1 with errno.  On the way *id is the
 * number of the move, done is called from the loop, and until then, or until
 * nobody is to be told, the group must stay. */
int mover_put(struct cgroup *, pid_t, uint64_t *id, mover_cb done, void *arg);
/* Somebody else is told how that move went; NULL: nobody.  0 is no move. */
void mover_hand(uint64_t id, mover_cb done, void *arg);

#endif
