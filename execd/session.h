/*
 * SPDX-License-Identifier: ISC
 *
 * Sessions: the runs that name one, and their common end.
 */
#ifndef ABX_EXECD_SESSION_H
#define ABX_EXECD_SESSION_H

#include <stdint.h>

struct job;

/*
 * Cancel everything of the session and answer ME_DONE of id: C_OK when nothing
 * of it is left, C_SRV_UNAVAILABLE when something cannot be killed.  At once
 * when there is nothing.
 */
void session_end(uint64_t id, const char *name);
/* A run is over; nothing for those without a session. */
void session_left(struct job *);

#endif
