/*
 * SPDX-License-Identifier: ISC
 *
 * Clocks.  Owns nothing: the memory for them is libevent's, which does not
 * give it back.
 */
#include "execd/clock.h"

#include <stdlib.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#define MAX_MS (366ULL * 24 * 3600 * 1000)

int
clock_set(struct event *ev, uint64_t ms)
{
	struct timeval tv;

	if (ms > MAX_MS)
		ms = MAX_MS;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	return event_add(ev, &tv);
}

static void
no_cb(evutil_socket_t fd, short what, void *arg)
{
}

int
clock_reserve(struct event_base *base, size_t n)
{
	struct event *all;
	size_t i;
	int rc = 0;

	if ((all = calloc(n, sizeof(*all))) == NULL)
		return -1;
	for (i = 0; i < n; i++) {
		evtimer_assign(&all[i], base, no_cb, NULL);
		if (clock_set(&all[i], MAX_MS) == -1)
			rc = -1;
	}
	for (i = 0; i < n; i++)
		event_del(&all[i]);
	free(all);
	return rc;
}
