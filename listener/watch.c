/*
 * SPDX-License-Identifier: ISC
 *
 * Watches.  Reads the frame pipe of one and writes events; a client that does
 * not read holds up its own worker, which then tells of an overflow.
 */
#include "listener/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/payload.h"
#include "common/proc.h"
#include "listener/conn.h"
#include "listener/pipe.h"
#include "listener/send.h"

#define PENDING_MAX (256 * 1024) /* unsent bytes before reading stops */
#define COMMENT_US 15000000
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
	w->quiet_until = proc_now_us() + COMMENT_US;
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

/* 0 to go on, -1 when the frame makes no sense. */
static int
on_event(struct conn *c, const uint8_t *p, size_t n)
{
	struct list_event e;
	struct wbuf w;

	if (list_event_get(p, n, &e) == -1)
		return -1;
	wbuf_init(&w, EVENT_MAX);
	put_event(&w, c->watching->path, &e);
	if (w.err)
		c->broken = 1;
	else
		send_piece(c, w.p, w.len);
	wbuf_free(&w);
	c->watching->quiet_until = proc_now_us() + COMMENT_US;
	return 0;
}

/* It is over: what was watched is gone, or its worker is. */
static int
finish(struct conn *c)
{
	c->req.busy = 0;
	send_end(c);
	return STEP_AGAIN;
}

/* The frames in n bytes: 0 to go on, else the step's answer. */
static int
feed(struct conn *c, const uint8_t *p, size_t n)
{
	const uint8_t *payload;
	uint8_t kind;
	size_t len;
	int r;

	while ((r = frame_feed(
		    &c->watching->dec, &p, &n, &kind, &payload, &len)) == 1)
		if (kind != FR_EVENT || on_event(c, payload, len) == -1)
			return finish(c);
	return r == 0 ? 0 : finish(c);
}

int
watch_step(struct conn *c)
{
	static uint8_t buf[64 * 1024];
	ssize_t n;
	int r, i;

	if (conn_flush(c) == -1)
		return STEP_GONE;
	if (obuf_left(&c->out) > PENDING_MAX)
		return WANT_WRITE;
	for (i = 0; i < 8; i++) {
		n = pipe_read(c->data_fd, buf, sizeof(buf));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n <= 0)
			return finish(c);
		if ((r = feed(c, buf, (size_t)n)) != 0)
			return r;
		if (obuf_left(&c->out) > PENDING_MAX)
			break;
	}
	if ((r = conn_flush(c)) == -1 || (i = conn_watch(c)) == STEP_GONE)
		return STEP_GONE;
	return (r == 0 ? WANT_WRITE : WANT_NONE) | WANT_DATA_R | i;
}

void
watch_tick(struct conn *c, uint64_t now)
{
	if (now < c->watching->quiet_until)
		return;
	c->watching->quiet_until = now + COMMENT_US;
	send_piece(c, ":\n\n", 3);
	(void)conn_flush(c);
}
