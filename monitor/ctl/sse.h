/*
 * SPDX-License-Identifier: ISC
 *
 * Server-sent events as they arrive (WHATWG HTML, 9.2.6, as far as the
 * service makes use of it).  Pure; every byte is hostile.
 */
#ifndef ABX_CTL_SSE_H
#define ABX_CTL_SSE_H

#include <stddef.h>

#define SSE_MAX (4U * 1024 * 1024) /* bytes of one line, and of an event */

struct sse {
	char *line, *data;
	size_t nline, ndata, line_cap, data_cap;
	char event[32];
};
/* One event: its name and its NUL-terminated data.  0, or -1 to stop. */
typedef int (*sse_cb)(const char *event, const char *data, void *arg);

/* Take bytes: 0; -1 when the callback said so; -2 when they are no events, or
 * memory ran out. */
int sse_take(struct sse *, const char *, size_t, sse_cb, void *arg);
void sse_clear(struct sse *);

#endif
