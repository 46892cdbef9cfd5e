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

/* How a move went: 0 or errno; EAGAIN when nobody made it, and the caller has
 * to (cgroup_put_pid). */
typedef void (*mover_cb)(int err, void *arg);

/* Start-up, once the process is confined.  Without one, when it cannot be
 * started or ends, mover_ask says so. */
void mover_begin(struct event_base *);
/* Ask for a process, numbered as this process sees it, to be moved into the
 * group; done is called from the loop.  The number of the move, or 0 when it
 * cannot be asked for. */
uint64_t mover_ask(const struct cgroup *, pid_t, mover_cb done, void *arg);
/* Somebody else is told how that move went; NULL: nobody.  0 is no move. */
void mover_hand(uint64_t id, mover_cb done, void *arg);

#endif
