/*
 * SPDX-License-Identifier: ISC
 *
 * The output of one run on its way from the program's pipes to the frame
 * pipe.  Never blocks the program for more than a second in all, and only a
 * streamed one, whatever the reader does.
 */
#ifndef ABX_EXECD_PUMP_H
#define ABX_EXECD_PUMP_H

#include "common/payload.h"

struct event_base;
struct pump;
struct spool;

struct pump_ops {
	/* Bytes came (for the idle clock). */
	void (*data)(void *);
	/* Both outputs are at their end. */
	void (*eof)(void *);
	/* After pump_end: everything was sent, or the reader is gone. */
	void (*done)(void *);
};

struct pump_io {
	int out, err;	     /* read ends of stdout and stderr */
	int frames;	     /* write end of the frame pipe, -1 with a spool */
	struct spool *spool; /* where the output of a process goes, or NULL;
			      * borrowed, and outlives the pump */
};

/* Take the descriptors, all non-blocking; flags are enum spawn_flag, max is in
 * bytes a stream and does not bound a spool.  NULL with errno, and the
 * descriptors stay the caller's. */
struct pump *pump_new(struct event_base *, const struct pump_io *,
    uint16_t flags, uint64_t max, const struct pump_ops *, void *arg);
void pump_free(struct pump *);
/* Is the program made to wait for a reader?  NULL is fine. */
int pump_waits(const struct pump *);
/* Nothing more is read but what lies in the pipes now; queue the tails and
 * the exit frame.  Fills in the counts of dropped bytes of *e and the flags
 * END_TRUNC_*.  Calls done later, from the loop. */
void pump_end(struct pump *, struct run_end *e);

#endif
