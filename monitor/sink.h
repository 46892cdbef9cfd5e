/*
 * SPDX-License-Identifier: ISC
 *
 * Where audit records go: descriptors that the parent opened.  Owns them and
 * what waits for them; knows nothing of what a record says, and never holds up
 * a request.
 */
#ifndef MONITOR_SINK_H
#define MONITOR_SINK_H

#include <stddef.h>
#include <stdint.h>

struct event_base;

#define SINK_MAX 16
#define SINK_QUEUE (1024 * 1024) /* bytes that wait for one sink */

/* Before any other: n sinks, at most SINK_MAX, none open yet.  What waits is
 * written at exit(3) too. */
void sink_init(struct event_base *, size_t n);
/* The descriptor of sink i (taken), instead of the one before, to which goes
 * what waited for it. */
void sink_set(size_t i, int fd);
/* 1 when there is any sink to write for. */
int sink_any(void);
/* One record, a whole line with its newline, to every sink.  It is written at
 * the end of this turn of the loop, or once a slow sink takes it; what finds
 * no room is lost and counted. */
void sink_put(const void *line, size_t len);
/* Write what waits and can be taken, now. */
void sink_flush(void);
/* Records that a sink did not take. */
uint64_t sink_lost(void);
/* Count one more, that was never a line. */
void sink_count_lost(void);

#endif
