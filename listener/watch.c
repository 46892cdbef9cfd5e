/*
 * SPDX-License-Identifier: ISC
 *
 * Watches.  Reads the frame pipe of one and writes events; a client that does
 * not read holds up its own worker, which then tells of an overflow.
 */
#include "listener/watch.h"

#include <stdlib.h>
#include <string.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/payload.h"
#include "common/proc.h"
#include "listener/conn.h"
#include "listener/frames.h"
#include "listener/send.h"

#define EVENT_MAX (128 * 1024)

struct watching {
	struct frame_dec dec;
	char *path;	      /* the caller's spelling */
	uint64_t quiet_until; /* us; a comment is due then */
};

void
watch_free(struct conn *c)
{
	if (c->watching == NULL)
		return;
	free(c->watching->path);
	free(c->watching);
	c->watching = NULL;
}

int
watch_begin(struct conn *c, struct ans *a, int *fd)
{
	struct watching *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		return -1;
	c->watching = w;
	w->path = a->body;
	a->body = NULL;
	w->quiet_until = proc_now_us() + FRAMES_QUIET;
	conn_set_data(c, *fd);
	*fd = -1;
	send_stream(c, a->status, "text/event-stream");
	/* so that a client knows that nothing is missed from here on */
	send_piece(c, ":\n\n", 3);
	conn_enter(c, CONN_WATCH);
	return 0;
}

static const char *const names[] = {[WE_CREATE] = "create",
    [WE_MODIFY] = "modify",
    [WE_DELETE] = "delete",
    [WE_MOVE] = "move",
    [WE_OVERFLOW] = "overflow"};

/* One event; the member of a path is named as entries have it. */
static void
put_event(struct wbuf *w, const char *path, const struct list_event *e)
{
	json_raw_put(w, "event: ");
	json_raw_put(w, names[e->what]);
	json_raw_put(w, "\ndata: {");
	entry_path_put(w, "path", path, e->path, e->pathlen);
	if (e->tolen > 0) {
		json_raw_put(w, ",");
		entry_path_put(w, "to", path, e->to, e->tolen);
	}
	json_raw_put(w, ",\"type\":\"");
	json_raw_put(w, entry_type(e->type));
	json_raw_put(w, "\"}\n\n");
}

/* It is over: what was watched is gone, or its worker is, or that makes no
 * sense. */
static int
over(struct conn *c, int malformed)
{
	c->req.busy = 0;
	send_end(c);
	return STEP_AGAIN;
}

static int
on_frame(struct conn *c, uint8_t kind, const uint8_t *p, size_t n)
{
	struct list_event e;
	struct wbuf w;

	if (kind != FR_EVENT || list_event_get(p, n, &e) == -1)
		return over(c, 1);
	wbuf_init(&w, EVENT_MAX);
	put_event(&w, c->watching->path, &e);
	if (w.err)
		c->broken = 1;
	else
		send_piece(c, w.p, w.len);
	wbuf_free(&w);
	c->watching->quiet_until = proc_now_us() + FRAMES_QUIET;
	return FRAMES_MORE;
}

int
watch_step(struct conn *c)
{
	static const struct frames_ops how = {on_frame, over};

	if (conn_flush(c) == -1)
		return STEP_GONE;
	return frames_step(c, &c->watching->dec, &how);
}

void
watch_tick(struct conn *c, uint64_t now)
{
	frames_tick(c, &c->watching->quiet_until, now);
}
