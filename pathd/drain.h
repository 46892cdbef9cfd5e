/*
 * SPDX-License-Identifier: ISC
 *
 * A pipe that a worker fills and the listener reads.
 */
#ifndef ABX_PATHD_DRAIN_H
#define ABX_PATHD_DRAIN_H

#include <stddef.h>
#include <stdint.h>

struct job;
struct drain {
	struct job *job;
	int pipe; /* to be closed by the owner */
};

/* Make the pipe and hand its read end out (LIST_ANS): 0, or -1 and the job is
 * answered. */
int drain_open(struct drain *, struct job *);
/* A framer_cb: wait as long as the reader does something. */
int drain_cb(void *drain, const uint8_t *, size_t);

#endif
