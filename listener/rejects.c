/*
 * SPDX-License-Identifier: ISC
 *
 * Refusals that the monitor is not asked about, and their message: how many,
 * and of those that showed no valid credential the first ones by name, for the
 * audit.  Never holds a credential.
 */
#include "listener/rejects.h"

#include <string.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/payload.h"
#include "common/wire.h"
#include "listener/listener.h"

static uint32_t counts[C_COUNT]; /* of those that are not named */
static struct reject named[REJECTS_NAMED];
static size_t nnamed;
static struct event timer;

static void
put_all(struct wbuf *w)
{
	struct reject many = {0};
	uint16_t n = (uint16_t)nnamed;
	size_t i;

	for (i = 0; i < C_COUNT; i++)
		n += counts[i] > 0;
	wput_u16(w, n);
	for (i = 0; i < nnamed; i++)
		reject_put(w, &named[i]);
	for (i = 0; i < C_COUNT; i++)
		if (counts[i] > 0) {
			many.code = (uint16_t)i;
			many.count = counts[i];
			reject_put(w, &many);
		}
}

static void
tell_cb(evutil_socket_t fd, short what, void *arg)
{
	struct wbuf w;

	wbuf_init(&w, msg_row(LM_REJECTS)->max);
	put_all(&w);
	if (w.err ||
	    chan_send(listener_mon(), LM_REJECTS, 0, -1, w.p, w.len) == -1)
		log_warn("refusals cannot be reported");
	memset(counts, 0, sizeof(counts));
	nnamed = 0;
	wbuf_free(&w);
}

void
rejects_init(struct event_base *base)
{
	if (event_assign(&timer, base, -1, 0, tell_cb, NULL) == -1)
		fatalx("event_assign");
}

void
rejects_add(enum code code, const char *reqid, const char *remote)
{
	static const struct timeval second = {1, 0};
	struct reject *j;

	if (codes[code].status == 401 && nnamed < REJECTS_NAMED) {
		j = &named[nnamed++];
		j->code = (uint16_t)code;
		j->count = 1;
		strlcpy(j->reqid, reqid, sizeof(j->reqid));
		strlcpy(j->remote, remote, sizeof(j->remote));
	} else if (counts[code] < UINT32_MAX)
		counts[code]++;
	if (!event_pending(&timer, EV_TIMEOUT, NULL))
		(void)event_add(&timer, &second);
}
