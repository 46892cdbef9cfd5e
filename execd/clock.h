/*
 * SPDX-License-Identifier: ISC
 *
 * Clocks of runs and sandboxes, which can always be set.
 */
#ifndef ABX_EXECD_CLOCK_H
#define ABX_EXECD_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct event;
struct event_base;

/* Start-up: memory for so many clocks at once.  0, or -1. */
int clock_reserve(struct event_base *, size_t n);
/* Start a clock anew, in milliseconds.  0, or -1: there is no memory, and there
 * are more than were reserved. */
int clock_set(struct event *, uint64_t ms);

#endif
