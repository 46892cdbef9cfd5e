/*
 * SPDX-License-Identifier: ISC
 *
 * Results and events of commands as JSON and as server-sent events.  Pure.
 */
#ifndef ABX_RUN_RENDER_H
#define ABX_RUN_RENDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/payload.h"

/* What was kept of one output stream. */
struct run_text {
	const uint8_t *p;
	size_t len;
	int truncated; /* there was more */
};

/* Bytes at the end of p that begin a UTF-8 sequence and do not finish it:
 * 0 to 3. */
size_t run_cut(const uint8_t *p, size_t len);
/* The name of a signal without SIG ("TERM", "RTMIN+3"), into out. */
void run_signal_name(int sig, char out[16]);
/* The whole result object.  out and err are NULL for the exit event of a
 * stream. */
void run_result_put(struct wbuf *, const struct run_end *,
    const struct run_text *out, const struct run_text *err);
/* One event.  id: what a follower may name later.  data of an output event is
 * {"offset","data","encoding"}; that of "exit" is the result object. */
void run_output_event_put(struct wbuf *, const char *name, const char *id,
    uint64_t offset, const uint8_t *p, size_t len);
/* Bytes that a slow reader, or one that came late, does not get; data is
 * {"stream","offset","bytes"}. */
void run_gap_event_put(struct wbuf *, const char *stream, const char *id,
    uint64_t offset, uint64_t bytes);
void run_exit_event_put(struct wbuf *, const char *id, const struct run_end *);

#endif
