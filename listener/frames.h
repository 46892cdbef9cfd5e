/*
 * SPDX-License-Identifier: ISC
 *
 * Answers that come as frames in the data pipe: the reading that listings,
 * runs and watches have in common.  Knows no kind of frame.
 */
#ifndef LISTENER_FRAMES_H
#define LISTENER_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct conn;
struct frame_dec;

#define FRAMES_MORE (-1)      /* no step's answer: go on */
#define FRAMES_QUIET 15000000 /* us of silence before a comment line */

struct frames_ops {
	/* One frame: FRAMES_MORE, or what the step returns. */
	int (*frame)(struct conn *, uint8_t kind, const uint8_t *p, size_t n);
	/* The pipe ended, or with malformed made no sense: what the step
	 * returns. */
	int (*over)(struct conn *, int malformed);
};

/* Read what is there and hand it on, unless the client is slow: then the
 * writer waits and not this process.  Returns as a step does. */
int frames_step(struct conn *, struct frame_dec *, const struct frames_ops *);
/* A comment line for a stream of events that was silent until that time,
 * which is put off. */
void frames_tick(struct conn *, uint64_t *quiet_until, uint64_t now);

#endif
