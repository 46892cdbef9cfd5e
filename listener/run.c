/*
 * SPDX-License-Identifier: ISC
 *
 * Commands.  Reads the one frame pipe of a run, keeps or streams what comes,
 * and feeds stdin at the same time, so that neither side waits for the
 * other.  What the frames mean to a client is in run_render.c.
 */
#include "listener/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/proc.h"
#include "common/run_render.h"
#include "listener/ask.h"
#include "listener/conn.h"
#include "listener/frames.h"
#include "listener/pipe.h"
#include "listener/send.h"

#define EVENT_MAX (8 * FRAME_MAX) /* one frame as an event */

struct output {
	uint8_t *p; /* captured */
	size_t len, cap;
	int truncated;
	uint64_t offset;  /* streamed: of the next byte */
	uint8_t carry[4]; /* streamed: start of a character */
	size_t ncarry;
};

struct run {
	struct frame_dec dec;
	struct output out[2];
	uint64_t max; /* bytes kept of each */
	int stream;
	int has_end;
	int broke; /* it is not execd who says that it was lost */
	int still; /* what there is was told; the process runs on */
	struct run_end end;
	uint64_t quiet_until; /* us; a comment is due then */
	int wait_in;	      /* RUN_IN was announced and did not come */
	int in_fd;	      /* stdin; -1 when none or done */
	size_t in_off;
	struct event in_ev;
};

static void
close_stdin(struct run *r)
{
	if (r->in_fd == -1)
		return;
	event_del(&r->in_ev);
	close(r->in_fd);
	r->in_fd = -1;
}

void
run_free(struct conn *c)
{
	struct run *r = c->run;
	int i;

	if (r == NULL)
		return;
	close_stdin(r);
	for (i = 0; i < 2; i++)
		if (r->out[i].p != NULL)
			freezero(r->out[i].p, r->out[i].len);
	free(r);
	c->run = NULL;
}

int
run_begin(struct conn *c, struct ans *a, int *fd)
{
	struct run *r;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return -1;
	c->run = r;
	r->in_fd = -1;
	r->max = a->size;
	r->stream = (a->flags & ANS_STREAM) != 0;
	r->wait_in = (a->flags & ANS_STDIN) != 0;
	r->quiet_until = proc_now_us() + FRAMES_QUIET;
	conn_set_data(c, *fd);
	*fd = -1;
	if (r->stream)
		send_stream(c, a->status, "text/event-stream");
	conn_enter(c, CONN_RUN);
	return 0;
}

/* ---- stdin ---- */

static void
stdin_cb(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	struct run *r = c->run;
	ssize_t n;

	while (r->in_off < c->req.in_len) {
		n = pipe_write(
		    r->in_fd, c->req.in + r->in_off, c->req.in_len - r->in_off);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			return;
		if (n == -1)
			break; /* the command does not read it: its right */
		r->in_off += (size_t)n;
	}
	close_stdin(r);
}

int
run_stdin(struct conn *c, int *fd)
{
	struct run *r = c->run;
	int fl;

	if (r == NULL || !r->wait_in || *fd == -1)
		return -1;
	r->wait_in = 0;
	if (r->has_end)
		return 0;
	r->in_fd = *fd;
	*fd = -1;
	fl = fcntl(r->in_fd, F_GETFL);
	if (fl != -1)
		(void)fcntl(r->in_fd, F_SETFL, fl | O_NONBLOCK);
	if (event_assign(&r->in_ev, event_get_base(&c->rev), r->in_fd,
		EV_WRITE | EV_PERSIST, stdin_cb, c) == -1 ||
	    event_add(&r->in_ev, NULL) == -1) {
		/* a command must not take it for the end of its input */
		errno = ENOMEM;
		return -1;
	}
	stdin_cb(r->in_fd, EV_WRITE, c);
	return 0;
}

/* ---- captured ---- */

/* Keep what the limit allows: 0, or -1 when out of memory. */
static int
keep(struct run *r, struct output *o, const uint8_t *p, size_t n)
{
	size_t cap;
	uint8_t *q;

	if (n > r->max - o->len) {
		n = (size_t)(r->max - o->len);
		o->truncated = 1;
	}
	if (o->len + n > o->cap) {
		for (cap = o->cap == 0 ? 4096 : o->cap; cap < o->len + n;)
			cap *= 2;
		if ((q = recallocarray(o->p, o->cap, cap, 1)) == NULL)
			return -1;
		o->p = q;
		o->cap = cap;
	}
	if (n > 0)
		memcpy(o->p + o->len, p, n);
	o->len += n;
	return 0;
}

static void
send_result(struct conn *c)
{
	struct run *r = c->run;
	struct run_text t[2];
	struct wbuf w;
	int i;

	for (i = 0; i < 2; i++) {
		t[i].p = r->out[i].p;
		t[i].len = r->out[i].len;
		t[i].truncated =
		    r->out[i].truncated ||
		    (r->end.flags & (i == 0 ? END_TRUNC_OUT : END_TRUNC_ERR));
	}
	wbuf_init(&w, 7 * (t[0].len + t[1].len) + 4096);
	run_result_put(&w, &r->end, &t[0], &t[1]);
	if (w.err)
		send_failure(c, C_SRV_UNAVAILABLE);
	else {
		/* before the answer, whose end is the end of the question */
		ask_result(c, w.p, w.len);
		send_json(c, 200, (const char *)w.p, w.len);
	}
	wbuf_free(&w);
}

/* ---- streamed ---- */

/* What a follower could name to go on from here. */
static void
event_id(const struct run *r, char out[48])
{
	struct wbuf w;

	wbuf_init(&w, 47);
	json_uint_put(&w, r->out[0].offset);
	json_raw_put(&w, "-");
	json_uint_put(&w, r->out[1].offset);
	wput_u8(&w, 0);
	strlcpy(out, w.err ? "0" : (const char *)w.p, 48);
	wbuf_free(&w);
}

static void
send_event(struct conn *c, struct wbuf *w)
{
	if (w->err)
		c->broken = 1;
	else
		send_piece(c, w->p, w->len);
	c->run->quiet_until = proc_now_us() + FRAMES_QUIET;
	wbuf_free(w);
}

static void
output_event(struct conn *c, int which, const uint8_t *p, size_t n)
{
	struct output *o = &c->run->out[which];
	uint64_t from = o->offset;
	struct wbuf w;
	char id[48];

	if (n == 0)
		return;
	o->offset += n;
	event_id(c->run, id);
	wbuf_init(&w, EVENT_MAX);
	run_output_event_put(
	    &w, which == 0 ? "stdout" : "stderr", id, from, p, n);
	send_event(c, &w);
}

/* A character that a frame cut in two waits for its other half. */
static void
stream_output(struct conn *c, int which, const uint8_t *p, size_t n)
{
	static uint8_t joined[FRAME_MAX + 4];
	struct output *o = &c->run->out[which];
	size_t cut;

	if (o->ncarry > 0) {
		memcpy(joined, o->carry, o->ncarry);
		memcpy(joined + o->ncarry, p, n);
		p = joined;
		n += o->ncarry;
	}
	cut = run_cut(p, n);
	memmove(o->carry, p + n - cut, cut);
	o->ncarry = cut;
	output_event(c, which, p, n - cut);
}

static void
flush_carry(struct conn *c)
{
	struct output *o;
	int i;

	for (i = 0; i < 2; i++) {
		o = &c->run->out[i];
		output_event(c, i, o->carry, o->ncarry);
		o->ncarry = 0;
	}
}

static void
stream_end(struct conn *c)
{
	struct wbuf w;
	char id[48];

	flush_carry(c);
	if (!c->run->still) {
		event_id(c->run, id);
		wbuf_init(&w, 4096);
		run_exit_event_put(&w, id, &c->run->end);
		send_event(c, &w);
	}
	send_end(c);
}

/* ---- frames ---- */

/* The end is known, in whatever way. */
static int
finish(struct conn *c)
{
	struct run *r = c->run;

	if (r->wait_in)
		return WANT_NONE; /* RUN_IN is on its way */
	c->req.busy = 0;
	close_stdin(r);
	if (r->stream)
		stream_end(c);
	else if (r->broke)
		send_failure(c, C_SRV_UNAVAILABLE);
	else
		send_result(c);
	return STEP_AGAIN;
}

/* The pipe broke off or made no sense: nobody saw how it ended. */
static int
lost(struct conn *c)
{
	memset(&c->run->end, 0, sizeof(c->run->end));
	c->run->end.flags = END_LOST;
	c->run->broke = 1;
	c->run->has_end = 1;
	return finish(c);
}

static int
on_exit_frame(struct conn *c, const uint8_t *p, size_t n)
{
	struct rbuf b;

	rbuf_init(&b, p, n);
	if (run_end_get(&b, &c->run->end) == -1 || rget_end(&b) == -1)
		return lost(c);
	c->run->has_end = 1;
	return finish(c);
}

static int
on_gap(struct conn *c, const uint8_t *p, size_t n)
{
	struct output *o;
	struct rbuf b;
	struct wbuf w;
	uint64_t missed, from;
	uint8_t kind;
	char id[48];

	rbuf_init(&b, p, n);
	kind = rget_u8(&b);
	missed = rget_u64(&b);
	if (rget_end(&b) == -1 || (kind != FR_OUT && kind != FR_ERR))
		return lost(c);
	flush_carry(c);
	o = &c->run->out[kind == FR_ERR];
	o->truncated = 1;
	from = o->offset;
	o->offset += missed;
	if (!c->run->stream)
		return 0;
	event_id(c->run, id);
	wbuf_init(&w, 512);
	run_gap_event_put(
	    &w, kind == FR_ERR ? "stderr" : "stdout", id, from, missed);
	send_event(c, &w);
	return 0;
}

/* Where the output of a process begins for this follower. */
static int
on_at(struct conn *c, const uint8_t *p, size_t n)
{
	struct run *r = c->run;
	struct rbuf b;

	rbuf_init(&b, p, n);
	r->out[0].offset = rget_u64(&b);
	r->out[1].offset = rget_u64(&b);
	return rget_end(&b) == -1 || !r->stream ? lost(c) : 0;
}

/* The process runs on, but only what was there is wanted. */
static int
on_still(struct conn *c, size_t n)
{
	if (n != 3 || !c->run->stream)
		return lost(c);
	c->run->still = 1;
	c->run->has_end = 1;
	return finish(c);
}

static int
take(struct conn *c, uint8_t kind, const uint8_t *p, size_t n)
{
	struct run *r = c->run;
	int which = kind == FR_ERR;

	switch (kind) {
	case FR_OUT:
	case FR_ERR:
		if (r->stream)
			stream_output(c, which, p, n);
		else if (keep(r, &r->out[which], p, n) == -1)
			return lost(c);
		return 0;
	case FR_GAP:
		return on_gap(c, p, n);
	case FR_AT:
		return on_at(c, p, n);
	case FR_END:
		return on_still(c, n);
	case FR_EXIT:
		return on_exit_frame(c, p, n);
	default:
		return lost(c);
	}
}

/* Only the end ends it; what there is to wait for then may be RUN_IN. */
static int
on_frame(struct conn *c, uint8_t kind, const uint8_t *p, size_t n)
{
	int r = take(c, kind, p, n);

	return c->run->has_end ? r : FRAMES_MORE;
}

static int
over(struct conn *c, int malformed)
{
	return lost(c);
}

int
run_step(struct conn *c)
{
	static const struct frames_ops how = {on_frame, over};

	if (conn_flush(c) == -1)
		return STEP_GONE;
	return c->run->has_end ? finish(c) : frames_step(c, &c->run->dec, &how);
}

void
run_tick(struct conn *c, uint64_t now)
{
	if (c->run->stream && !c->run->has_end)
		frames_tick(c, &c->run->quiet_until, now);
}
