/*
 * SPDX-License-Identifier: ISC
 *
 * Counts of refusals and their message.  Never holds who was refused.
 */
#include "listener/rejects.h"

#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/wire.h"
#include "listener/listener.h"

static uint32_t counts[C_COUNT];
static struct event timer;

static void
tell_cb(evutil_socket_t fd, short what, void *arg)
{
	struct wbuf w;
	uint16_t n = 0;
	int i;

	for (i = 0; i < C_COUNT; i++)
		n += counts[i] > 0;
	wbuf_init(&w, 4096);
	wput_u16(&w, n);
	for (i = 0; i < C_COUNT; i++)
		if (counts[i] > 0) {
			wput_u16(&w, (uint16_t)i);
			wput_u32(&w, counts[i]);
		}
	if (w.err ||
	    chan_send(listener_mon(), LM_REJECTS, 0, -1, w.p, w.len) == -1)
		log_warn("refusals cannot be reported");
	memset(counts, 0, sizeof(counts));
	wbuf_free(&w);
}

void
rejects_init(struct event_base *base)
{
	if (event_assign(&timer, base, -1, 0, tell_cb, NULL) == -1)
		fatalx("event_assign");
}

void
rejects_count(enum code code)
{
	static const struct timeval second = {1, 0};

	if (counts[code] < UINT32_MAX)
		counts[code]++;
	if (!event_pending(&timer, EV_TIMEOUT, NULL))
		(void)event_add(&timer, &second);
}
